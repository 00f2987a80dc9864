"""The catalogue's files: complete, the same each time, and nothing a package says is more than text."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import posixpath
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from attrs import evolve
from chalie.authoring.catalogue import schema, write
from chalie.authoring.fields import fields
from chalie.authoring.markdown import markdown, plain
from chalie.authoring.site import pages
from chalie.catalogue.descriptor import Descriptor
from chalie.catalogue.identity import PROTOCOL, Document, identity, read
from chalie.errors import ConfigError
from chalie.gate.display import escaped
from chalie.pins import own_descriptors
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.authoring.conftest import Ran
from tests.authoring.documents import document_of
from tests.authoring.subjects import subject

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "</title></style><script>alert(1)</script><img src=//evil.example/x onerror=alert(1)> \u202e'\"`|]("


def hostile() -> Descriptor:
    return subject(
        "note_add",
        HOSTILE,
        dist="mcp:" + "evil",
        namespace=HOSTILE[:60],
        examples=[HOSTILE],
        parameters={
            "type": "object",
            "properties": {HOSTILE[:40]: {"description": HOSTILE, "enum": [HOSTILE], "default": HOSTILE}},
        },
        actions={HOSTILE[:30]: "destructive"},
    ).descriptor


def some() -> list[Descriptor]:
    edits = {
        "type": "array",
        "maxItems": 5,
        "items": {
            "type": "object",
            "properties": {"old": {"type": "string", "minLength": 1}},
            "required": ["old"],
        },
    }
    return [
        *own_descriptors().values(),
        subject("crm_contact_add", "Add a contact.", examples=["a new customer"]).descriptor,
        subject(
            "crm_contact_list", "List the contacts.", side_effect="read", dist="chalie-ability-crm"
        ).descriptor,
        evolve(
            subject(
                "text_update", "Edit a text.", parameters={"type": "object", "properties": {"edits": edits}}
            ).descriptor,
            requires_approval=True,
            latency="interactive",
            discoverable=False,
            isolate=True,
            time_limit_s=30.0,
        ).sealed(),
    ]


class _Page(HTMLParser):
    """What a browser would make of a page: elements, and what they load or link to."""

    VOID = frozenset({"meta", "input", "wbr", "br", "link", "img"})

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.raw: dict[str, str] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script"):
            self.raw[self.open[-1]] = data
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def all(self, fact: str) -> list[str]:
        return [attributes[fact] or "" for _, attributes in self.elements if fact in attributes]


def parsed(found: Document) -> dict[str, _Page]:
    return {name: _Page(text) for name, text in pages(found).items()}


def test_the_json_is_what_its_schema_says_and_reads_back_as_itself(tmp_path: Path) -> None:
    found = document_of([*some(), hostile()])
    written = write(found, tmp_path / "out")
    assert [path.name for path in written] == ["catalogue.json", "catalogue.md", "index.html"]
    jsonschema_rs.validator_for(schema()).validate(json.loads(written[0].read_text()))
    assert read(written[0]) == found


def test_the_schema_refuses_a_row_that_lacks_a_fact_or_has_one_too_many() -> None:
    validator = jsonschema_rs.validator_for(schema())
    row = dict(document_of(some()).abilities[0])
    lacking = {key: row[key] for key in row if key != "latency"}
    whole = document_of(some()).as_json()
    assert validator.is_valid(whole)
    for wrong in ({**row, "more": 1}, lacking, {**row, "hash": "x"}, {**row, "side_effect": "mild"}):
        assert not validator.is_valid(whole | {"abilities": [wrong]})


def test_the_schema_is_published_as_it_is_shipped() -> None:
    assert json.loads((ROOT / "docs" / "catalogue.schema.json").read_text()) == schema()


def test_the_identity_is_the_hash_that_the_page_describes() -> None:
    found = document_of(some())
    whole = {"format": "chalie-catalogue/1", "protocol": PROTOCOL, "abilities": list(found.abilities)}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"))
    assert found.identity == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@pytest.mark.parametrize("fact", ["summary", "latency", "version", "namespace", "time_limit_s", "isolate"])
def test_any_fact_of_any_ability_changes_the_identity(fact: str) -> None:
    values: dict[str, Any] = {"time_limit_s": 3.0, "isolate": False}
    items = some()
    changed = evolve(items[-1], **{fact: values.get(fact, "low")})
    assert document_of([*items[:-1], changed]).identity != document_of(items).identity


def test_a_page_for_each_namespace_tells_everything_about_its_tools() -> None:
    found = parsed(document_of(some()))
    assert sorted(found) == [
        "index.html",
        "namespaces/crm.html",
        "namespaces/find.html",
        "namespaces/read.html",
        "namespaces/text.html",
    ]
    text = found["namespaces/text.html"].text
    for said in (
        "chalie-ability-planted 1",
        "writes here (write)",
        "always asked about",
        "interactive: it waits for a person",
        "only where it is pinned, in a process of its own, given up after 30 s",
        "edits[].old",
        "required",
        "up to 5 items",
    ):
        assert said in text
    assert "the host, chalie" in found["namespaces/find.html"].text
    index = found["index.html"].text
    assert all(item.name in index for item in some())


def test_a_site_loads_nothing_and_its_links_lead_somewhere() -> None:
    found = parsed(document_of([*some(), hostile()]))
    for name, page in found.items():
        tags = {tag for tag, _ in page.elements}
        assert not tags & {"link", "img", "iframe", "object", "embed", "video", "audio"}
        assert not page.all("src")
        for link in page.all("href"):
            target, _, anchor = link.partition("#")
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            there = found[path] if target else page
            assert not anchor or anchor in there.all("id"), link


def test_what_a_page_may_run_is_its_own_script_and_style_alone() -> None:
    for page in parsed(document_of([*some(), hostile()])).values():
        policy = next(a["content"] for tag, a in page.elements if a.get("http-equiv"))
        assert policy is not None
        for kind in ("style", "script"):
            digest = base64.b64encode(hashlib.sha256(page.raw[kind].encode()).digest()).decode()
            assert f"{kind}-src 'sha256-{digest}'" in policy
        assert "default-src 'none'" in policy
        assert not [fact for fact in page.elements if any(key.startswith("on") for key in fact[1])]
        assert not page.all("style")


def test_no_text_of_a_package_is_more_than_text() -> None:
    found = parsed(document_of([hostile()]))
    shown = HOSTILE.replace("\u202e", "\\u202e")
    assert sorted(found)[1].startswith("namespaces/title-style-script")
    for page in found.values():
        assert sum(tag == "script" for tag, _ in page.elements) == 1
        assert shown in page.text
        assert "\u202e" not in page.text


def test_a_page_can_be_used_without_sight_or_mouse() -> None:
    for page in parsed(document_of(some())).values():
        tags = [tag for tag, _ in page.elements]
        assert tags.count("h1") == tags.count("main") == tags.count("nav") == 1
        assert [a["lang"] for tag, a in page.elements if tag == "html"] == ["en"]
        inputs = [a for tag, a in page.elements if tag == "input" and a.get("type") == "search"]
        labels = {a.get("for") for tag, a in page.elements if tag == "label"}
        assert all(a["id"] in labels for a in inputs)
        assert all(a.get("scope") for tag, a in page.elements if tag == "th")
        assert ("#main" in page.all("href")) and len(page.all("id")) == len(set(page.all("id")))


names = st.text(max_size=12)


@settings(max_examples=40)
@given(names, st.text(max_size=60), st.lists(names, max_size=3))
def test_every_text_gives_pages_and_markdown_that_hold(
    namespace: str, summary: str, examples: list[str]
) -> None:
    item = subject(
        "a_b_add", summary, namespace=namespace, examples=examples, parameters={"properties": {summary: 3}}
    )
    found = document_of([item.descriptor])
    for name, page in parsed(found).items():
        assert re.fullmatch(r"index\.html|namespaces/[a-z0-9.-]+\.html", name)
        assert page.raw["script"]
    assert markdown(found).count("\n## ") == 1


MARKUP = st.text(alphabet=list("ab1 .)#*_-+=>`[]()!|~&<:/\\\n$@"), max_size=14)


@settings(max_examples=300)
@given(MARKUP | st.text(max_size=40))
def test_a_text_in_markdown_is_shown_as_that_text_wherever_it_stands(text: str) -> None:
    shown = plain(text)
    line = " ".join(escaped(text.replace("\n", " ").replace("\t", " ")).split())
    reader = MarkdownIt("commonmark").enable("table")
    for before, open_, close in (
        ("", "<p>", "</p>"),
        ("# ", "<h1>", "</h1>"),
        ("- ", "<ul>\n<li>", "</li>\n</ul>"),
    ):
        if line:
            made = reader.render(f"{before}{shown}\n").strip()
            assert html.unescape(made) == f"{open_}{line}{close}"
    cells = reader.render(f"| a | b |\n| --- | --- |\n| {shown} | end |\n")
    assert html.unescape(cells).count(f"<td>{line}</td>\n<td>end</td>") == 1


@pytest.mark.parametrize("text", ["see https://a.b", "www.a.b", "mail me@a.b", ":smile:", "$x$"])
def test_what_github_would_make_something_of_is_kept_from_it(text: str) -> None:
    assert "\\" in plain(text)


def test_namespaces_that_look_alike_have_pages_of_their_own() -> None:
    alike = ["crm", "CRM", "c-r-m", "c_r_m", "../crm", "", "index", "c.r.m"]
    items = [subject(f"n{n}_add", "Add.", namespace=name).descriptor for n, name in enumerate(alike)]
    assert len(pages(document_of(items))) == len(alike) + 1


def test_a_folder_of_somebody_else_is_not_replaced_and_our_own_is(tmp_path: Path) -> None:
    found = document_of(some())
    write(found, tmp_path)
    (tmp_path / "mine.txt").write_text("kept")
    write(document_of(some()[:3]), tmp_path)
    assert sorted(path.name for path in (tmp_path / "site" / "namespaces").iterdir()) == [
        "find.html",
        "read.html",
    ]
    (tmp_path / "site" / "notes.html").write_text("<p>my own</p>")
    with pytest.raises(ConfigError, match="no site of a catalogue, so it is not replaced"):
        write(found, tmp_path)
    assert (tmp_path / "site" / "notes.html").read_text() == "<p>my own</p>"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "catalogue.json",
        "catalogue.md",
        "mine.txt",
        "site",
    ]


def test_the_types_and_bounds_of_parameters_are_said_in_words() -> None:
    schema_of = {
        "properties": {
            "a": {"enum": ["x", 1], "default": "x"},
            "b": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
            "c": {"type": ["integer", "null"], "minimum": 1, "multipleOf": 2},
            "d": {"type": "array", "items": {"$ref": "#/$defs/place"}},
            "e": {"const": True},
            "f": {"type": "string", "minLength": 1, "writeOnly": True},
            "g": True,
        }
    }
    rows = {field.path: (field.kind, *field.bounds) for field in fields(schema_of)}
    assert rows == {
        "a": ("one of x, 1",),
        "b": ("text (date) or null",),
        "c": ("integer or null", "≥ 1", "a multiple of 2"),
        "d": ("list of place",),
        "e": ("always true",),
        "f": ("text", "not empty"),
        "g": ("any value",),
    }
    assert [field.path for field in fields(schema_of) if field.secret] == ["f"]


def test_the_commands_build_a_catalogue_and_compare_two(chalie: Callable[..., Ran], tmp_path: Path) -> None:
    told = chalie("catalogue", "build", str(tmp_path / "out"), "--json")
    built = tmp_path / "out" / "catalogue.json"
    assert (told.code, told.json["tools"], told.json["protocol"]) == (0, 5, PROTOCOL)
    assert told.json["identity"] == read(built).identity
    assert told.json["written"][2] == str(tmp_path / "out" / "site" / "index.html")
    same = chalie("catalogue", "diff", str(built), str(built))
    assert (same.code, same.out) == (0, "no change\n")

    rows = [row for row in read(built).abilities if row["name"] != "dice"]
    less = tmp_path / "less" / "catalogue.json"
    write(Document(PROTOCOL, identity(PROTOCOL, rows), tuple(rows)), less.parent, ("json",))
    gone = chalie("catalogue", "diff", str(built), str(less))
    assert gone.code == 1
    assert "breaking  dice  chalie-ability-dice no longer has it" in gone.out
    assert gone.out.endswith("\n1 breaking, 0 compatible\n")
    back = chalie("catalogue", "diff", str(less), str(built), "--json")
    assert (back.code, back.json["breaking"], back.json["compatible"]) == (0, 0, 1)
    assert back.json["changes"] == [
        {"tool": "dice", "breaking": False, "what": "chalie-ability-dice brings it"}
    ]
    assert chalie("catalogue", "build", str(built)).code == 2


def test_a_built_catalogue_can_be_linted(chalie: Callable[..., Ran], tmp_path: Path) -> None:
    chalie("catalogue", "build", str(tmp_path), "--form", "json")
    assert [path.name for path in tmp_path.glob("catalogue*")] == ["catalogue.json"]
    found = chalie("lint", str(tmp_path / "catalogue.json"), "--json").json["findings"]
    assert [(row["rule"], row["tool"]) for row in found] == [("verb-replaced", "coin_create")]
