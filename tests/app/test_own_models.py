"""Archives that visitors send are read within bounds, and nothing of a bad one is left."""

import stat
import zipfile

import pytest

from cse.app.training import trainings
from cse.app.training.trainings import unpack_model

CONFIG, WEIGHTS = ("m/config.json", b"{}"), ("m/model.safetensors", b"weights")


def packed(path, *members):
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in members:
            opened.writestr(name, content)
    return path


def link(name):
    member = zipfile.ZipInfo(name)
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    return member


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ([("../config.json", b"{}"), WEIGHTS], "has no config.json"),
        ([CONFIG, ("m/model.safetensors", bytes(2000))], "unpacks to"),
        ([(f"m/{number}.json", b"") for number in range(trainings.MAX_FILES + 1)], "has 201 entries"),
        ([CONFIG, ("m/pytorch_model.bin", b"pickle")], "pickled weights are never opened"),
    ],
)  # fmt: skip
def test_a_bad_archive_is_refused_in_one_line_and_leaves_nothing(tmp_path, members, reason):
    path = packed(tmp_path / "x.zip", *members)
    with pytest.raises(ValueError, match=reason) as error:
        unpack_model(path, tmp_path / "out", 1000)
    assert "\n" not in str(error.value)
    assert [each.name for each in tmp_path.iterdir()] == ["x.zip"]


def test_an_archive_writes_plain_files_within_its_folder_whatever_it_names(tmp_path):
    members = [
        CONFIG,
        (link("m/model.safetensors"), b"/etc/passwd"),
        ("/m/../x/vocab.txt", b"a"),
        ("/etc/a.json", b"{}"),
    ]
    folder = unpack_model(packed(tmp_path / "in" / "x.zip", *members), tmp_path / "out", 1000)
    assert folder == tmp_path / "out" / "m"
    weights = folder / "model.safetensors"
    assert (weights.is_symlink(), weights.read_bytes()) == (False, b"/etc/passwd")  # the name of a file, not the file
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {"in/x.zip", "out/m/config.json", "out/m/model.safetensors", "out/etc/a.json"}


def test_a_file_that_is_no_archive_or_lies_about_its_size_is_refused(tmp_path):
    bad = tmp_path / "bad.zip"
    bad.write_bytes(b"PK no archive")
    with pytest.raises(ValueError, match=r"cannot be read as a \.zip"):
        unpack_model(bad, tmp_path / "out", 1000)
    packed(bad, CONFIG, ("m/model.safetensors", bytes(5000)))
    whole = bad.read_bytes()
    bad.write_bytes(whole[:-10])  # as a download that ended early
    with pytest.raises(ValueError, match=r"cannot be read as a \.zip"):
        unpack_model(bad, tmp_path / "out", 10_000)
    content = whole.replace((5000).to_bytes(4, "little"), (50).to_bytes(4, "little"))
    bad.write_bytes(content)
    with pytest.raises(ValueError, match=r"cannot be read as a \.zip"):
        unpack_model(bad, tmp_path / "out", 10_000)
    assert not (tmp_path / "out").exists()


def test_only_configurations_weights_and_vocabularies_are_unpacked(tmp_path):
    others = [("m/run.py", b"x"), ("m/x.bin", b"x"), ("m/.hidden.json", b"x"), ("__MACOSX/m/config.json", b"x")]
    path = packed(
        tmp_path / "x.zip", CONFIG, WEIGHTS, ("m/1_Pooling/config.json", b"{}"), ("m/vocab.txt", b"a"), *others
    )
    assert unpack_model(path, tmp_path / "out", 1000) == tmp_path / "out" / "m"
    found = sorted(each.relative_to(tmp_path / "out").as_posix() for each in (tmp_path / "out").rglob("*.*"))
    assert found == ["m/1_Pooling/config.json", "m/config.json", "m/model.safetensors", "m/vocab.txt"]
