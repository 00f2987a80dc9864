"""Which model is used: found without importing anything, never downloaded, never outside its folder."""

from __future__ import annotations

import shutil
import socket
import sys
from pathlib import Path

import pytest
from chalie.catalogue.descriptor import EntryPoint
from chalie.discovery.embedding import Embedder, model_folder
from chalie.errors import ConfigError


def entry(dist: str, value: str, name: str = "m") -> EntryPoint:
    return EntryPoint(dist, "chalie.models", name, value)


@pytest.fixture
def packaged(site: Path, model: Path) -> Path:
    package = site / "some_model"
    shutil.copytree(model, package / "model")
    (package / "__init__.py").write_text("raise SystemExit('a model package is never imported')")
    return package


def test_a_package_is_found_without_importing_it(packaged: Path) -> None:
    assert model_folder(None, [entry("some-model", "some_model")]) == packaged / "model"
    assert model_folder(None, [entry("some-model", "some_model.model")]) == packaged / "model"
    assert "some_model" not in sys.modules


def test_the_host_model_comes_first_and_an_option_chooses_another(packaged: Path, model: Path) -> None:
    points = [entry("a-model", "some_model", "other"), entry("chalie-model-static", "chalie_model_static")]
    assert model_folder(None, points) == model
    assert model_folder("other", points) == model_folder("a-model", points) == packaged / "model"


def test_a_folder_can_be_named(model: Path) -> None:
    assert model_folder(str(model), []) == model


def test_an_unknown_name_is_never_looked_up_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(ConfigError, match="neither a folder nor an installed model") as caught:
        model_folder("minishlab/potion-base-8M", [])
    assert "never downloaded" in str(caught.value.hint)


def test_no_model_at_all_names_the_package_to_install() -> None:
    with pytest.raises(ConfigError, match="no embedding model is installed") as caught:
        model_folder(None, [])
    assert caught.value.hint == "pip install chalie-model-static"


@pytest.mark.parametrize(
    "value", ["no_such_package", "json", "chalie", "..", "", "sys", "json./etc", "json.a/../.."]
)
def test_an_entry_point_that_leads_nowhere_is_named(value: str) -> None:
    with pytest.raises(ConfigError, match="bad-model: the entry point m = "):
        model_folder(None, [entry("bad-model", value)])


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_half_downloaded_folder_names_the_missing_file(packaged: Path, name: str) -> None:
    (packaged / "model" / name).unlink()
    with pytest.raises(ConfigError):
        model_folder(str(packaged / "model"), [])


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "chat.txt", "lexicon.safetensors"])
def test_a_link_out_of_the_folder_is_refused(packaged: Path, tmp_path: Path, name: str) -> None:
    folder = packaged / "model"
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="leaves the model folder"):
        Embedder.open(model_folder(str(folder), []))


def test_a_folder_in_place_of_a_file_is_refused(packaged: Path) -> None:
    (packaged / "model" / "tokenizer.json").unlink()
    (packaged / "model" / "tokenizer.json").mkdir()
    with pytest.raises(ConfigError, match=r"no file tokenizer\.json"):
        model_folder(str(packaged / "model"), [])


def test_a_linked_model_folder_is_used_where_it_really_is(model: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(model)
    assert model_folder(str(tmp_path / "link"), []) == model.resolve()
