"""A Gradio client for tests."""

from gradio_client import Client


def app_client(url: str) -> Client:
    """A client of the app at an address.

    It ignores proxy settings: a client's thread would read all environment variables while pytest changes one of its
    own, which raises KeyError. A busy machine may answer after more than the usual five seconds.
    """
    return Client(url, verbose=False, httpx_kwargs={"trust_env": False, "timeout": 60})
