# The app for a CPU:
#
#   docker build -t embeddings .
#   docker run --rm -p 127.0.0.1:7860:7860 embeddings
#
# OpenVINO computes the vectors, so PyTorch, transformers, accelerate, datasets and matplotlib are left out. Without them
# the app can neither train nor show attention and prefixes; everything else works. There is no password: publish the
# port only where every visitor may use the app. `docker logs` has the address with the owner's token, or set
# -e CSE_TOKEN=….
FROM python:3.12-slim

SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /srv/embeddings
COPY requirements.txt ./
COPY scripts/setup.sh scripts/
# The versions of the lock; the last three packages otherwise come with those that are left out.
RUN . scripts/setup.sh \
 && for_cpu requirements.txt | grep -vE '^(torch|transformers|accelerate|datasets|matplotlib)==' >light.txt \
 && pip install --no-cache-dir --no-compile -r light.txt tokenizers safetensors pyarrow \
 && useradd --create-home visitor
COPY app.py LICENSE ./
COPY index index
COPY cse cse

USER visitor
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
EXPOSE 7860
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:7860', timeout=10)"]
CMD ["python", "app.py", "--host", "0.0.0.0", "--port", "7860"]
