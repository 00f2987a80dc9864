"""Where turns happen: the three policy channels, the delegates, and what `config.toml` adds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from attrs import evolve

from .calls import Channel
from .config import ChannelOptions, Config
from .errors import ConfigError

__all__ = ["BUILT_IN", "DEFAULT_PINS", "channel_named", "channels"]

#: what an agent starts with. Memory is named with its package, so no other package can take its place.
DEFAULT_PINS: Final = ("find_tools", "find_skills", "chalie-ability-memory:memory")

#: the channels every home has; `config.toml` may change their pins and whether they offer background calls.
BUILT_IN: Final[Mapping[str, Channel]] = MappingProxyType(
    {
        "chat": Channel("chat", "chat", has_person=True, pins=DEFAULT_PINS, background=True),
        "subconscious": Channel(
            "subconscious", "subconscious", has_person=False, pins=DEFAULT_PINS, background=False
        ),
        "external_agent": Channel(
            "external_agent", "external_agent", has_person=False, pins=DEFAULT_PINS, background=False
        ),
        "web_search": Channel(
            "web_search", "", has_person=False, pins=("web_search",), background=False, delegate=True
        ),
    }
)

_POLICY_CHANNELS: Final = ("chat", "subconscious", "external_agent")


def channels(config: Config) -> Mapping[str, Channel]:
    """Return every channel of a home by name: the built-in ones, changed and joined by the configured ones.

    A configured channel with a `policy` is a channel of its own under that policy channel's rows; one
    without is a delegate, which takes policy, principal and approver from the turn that opens it.

    Raises:
        ConfigError: a channel names a policy channel that does not exist, or changes a built-in one's.
    """
    known = dict(BUILT_IN)
    for name, options in config.channels.items():
        known[name] = _configured(name, options)
    return MappingProxyType(known)


def _configured(name: str, options: ChannelOptions) -> Channel:
    built_in = BUILT_IN.get(name)
    if built_in is not None and options.policy not in (None, built_in.policy):
        raise ConfigError(
            f"[channels.{name}] policy = {options.policy!r}: the policy of a built-in channel is fixed",
            hint="remove the line, or give the channel a name of its own",
        )
    if options.policy is not None and options.policy not in _POLICY_CHANNELS:
        raise ConfigError(
            f"[channels.{name}] policy = {options.policy!r} is no policy channel",
            hint=f"use one of {', '.join(_POLICY_CHANNELS)}, or leave it out for a delegate channel",
        )
    base = built_in or Channel(
        name,
        options.policy or "",
        has_person=options.policy == "chat",
        pins=DEFAULT_PINS if options.policy else (),
        background=options.policy == "chat",
        delegate=options.policy is None,
    )
    return evolve(
        base,
        pins=base.pins if options.pins is None else tuple(options.pins),
        background=base.background if options.background is None else options.background,
    )


def channel_named(known: Mapping[str, Channel], name: str) -> Channel:
    """Return a channel by name.

    Raises:
        ConfigError: there is no channel of that name.
    """
    try:
        return known[name]
    except KeyError:
        raise ConfigError(
            f"there is no channel {name!r}",
            hint=f"use one of {', '.join(sorted(known))}, or add [channels.{name}] to config.toml",
        ) from None
