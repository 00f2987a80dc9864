"""The whole host as one MCP server: a listing that stays small, and one road for every call."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .. import __version__
from ..dispatch.resolve import resolve
from ..envelope import render
from ..errors import ChalieError
from ..ledger.hold import OPEN
from ..names import OWN_DIST
from ..result import ToolResult
from .answers import Progressing, answered, refused
from .conversations import conversation_of, invalid, is_modern
from .offer import CALL_TOOL, mark, name_of, offered
from .questions import ANSWER, AskedAtClient, AskedByRequest, can_ask, form
from .sessions import Listens, Session, Sessions
from .states import States

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server

    from ..calls import Approver
    from ..catalogue.descriptor import Descriptor
    from ..catalogue.snapshot import Snapshot
    from ..dispatch.state import TurnState
    from ..ledger.hold import Hold
    from .doors import Caller, Exchange, Turns
    from .offer import Kept, Offer

    Context = ServerRequestContext[Any, Any]

__all__ = ["ToolServer"]

#: requests whose turn may be opened at once: it looks at the disk, and may wait for a build.
_OPENERS: Final = 8
#: seconds between looks at what was installed while no client asks.
WATCH_S: Final = 5.0
_INSTRUCTIONS: Final = (
    "Chalie hosts many tools and lists few. Describe each action you need to find_tools (one entry per "
    "action); its answer holds the definitions of what it found. Found tools join the list where your client "
    "reads it again; call_tool calls any of them by name at once. find_skills gives playbooks for work of "
    "several steps. A result that was cut says result=<id>; read_result reads the rest, and the text "
    "result:<id> stands for it in an argument. What waits for a person is answered with approval-pending: "
    "go on without it; what becomes of it comes with a later answer."
)

_T = TypeVar("_T")


class ToolServer:
    """Serves a host's tools.

    Args:
        host: opens the turns.
        caller: tells who makes a request.
        person_at_client: whether what the gate asks about may be answered by whoever sits at the client.
    """

    def __init__(
        self, host: Turns, caller: Callable[[Context], Caller], *, person_at_client: bool = False
    ) -> None:
        self._host = host
        self._caller = caller
        self._person_at_client = person_at_client
        self._sessions = Sessions()
        self._states = States(host.ledger)
        self._openers = ThreadPoolExecutor(_OPENERS, thread_name_prefix="chalie-mcp-turn")
        self._kept: Kept = {}
        self._process = secrets.token_hex(8)

    def build(self) -> Server[Any]:
        """Return the SDK's server."""
        from mcp.server.caching import CacheHint
        from mcp.server.lowlevel import NotificationOptions, Server
        from mcp.server.models import InitializationOptions

        class Listed(Server[Any]):
            """The SDK's server, which says in every era that its list of tools changes."""

            def create_initialization_options(
                self,
                notification_options: NotificationOptions | None = None,
                experimental_capabilities: dict[str, dict[str, Any]] | None = None,
                extensions: dict[str, dict[str, Any]] | None = None,
            ) -> InitializationOptions:
                changes = notification_options or NotificationOptions(tools_changed=True)
                return super().create_initialization_options(changes, experimental_capabilities, extensions)

        server = Listed(
            "chalie",
            version=__version__,
            title="Chalie",
            instructions=_INSTRUCTIONS,
            # what a client may call depends on who it is and on what it found a moment ago
            cache_hints={"tools/list": CacheHint(ttl_ms=0, scope="private")},
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=self._listen,
        )
        # no tool here has its arguments in headers: else each call would have the whole list made, to compare
        # them. The first versions of the SDK know no such attribute, and always do that.
        server.get_tool_input_schema = lambda name: None
        return server

    def close(self) -> None:
        """Open no more turns."""
        self._openers.shutdown(wait=False, cancel_futures=True)

    def forget(self, caller: Caller, session: str) -> None:
        """Let go of what was kept for a session that its client has ended.

        Args:
            caller: whose it was.
            session: its id, as the transport knows it.
        """
        self._sessions.drop(("session", caller.id, session))

    async def watch(self) -> None:
        """Tell clients of tools that were installed, removed or changed while they asked for nothing."""
        seen: Snapshot | None = None
        while True:
            await asyncio.sleep(WATCH_S)
            try:
                seen = await self._look(seen)
            except Exception:  # a home that cannot be read now is looked at again
                continue

    async def _look(self, seen: Snapshot | None) -> Snapshot | None:
        """Tell every client whose list is another one than it knows; return what is installed now.

        Args:
            seen: what was installed at the last look: while it is that, nothing has changed for anybody.
        """
        now = None
        for session in self._sessions.all():
            if session.told is None:
                continue
            turn = await self._in_thread(partial(self._open, session.caller, session, None))
            now = turn.state.snapshot
            if now is seen:
                break
            await self._tell(session, turn.state)
        return now

    # requests

    async def _list(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        from mcp_types import ListToolsResult

        caller = self._caller(context)
        session = self._session(context, caller)
        offer = await self._in_thread(partial(self._offer, caller, session))
        if session is not None:
            session.told = offer.mark
            session.peer = context.session
        left_out = {"chalie/left_out": dict(offer.left_out)} if offer.left_out else None
        return ListToolsResult(tools=list(offer.tools), _meta=left_out)

    async def _call(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        caller = self._caller(context)
        session = self._session(context, caller)
        name, arguments = params.name, params.arguments
        by_door = name == CALL_TOOL
        if by_door:
            asked = _asked(arguments)
            if isinstance(asked, ToolResult):
                return refused(render(CALL_TOOL, asked))
            name, arguments = asked
        hold: Hold | None = None
        if params.request_state is not None:
            hold = await self._in_thread(partial(self._brought_back, params.request_state, caller))
        approver = self._approver(context, caller, params, hold)
        progress = Progressing(context, asyncio.get_running_loop())
        conversation = None if hold is None else hold.conversation
        turn, waits = await self._in_thread(
            partial(self._begin, caller, session, approver, conversation=conversation, progress=progress)
        )
        if hold is not None and hold.state not in OPEN:
            text = render(name[:128], _settled(hold))
            return refused(text, await self._in_thread(partial(self._inbox, turn.state)))
        state = turn.state
        if session is not None:
            for each in session.found(state.snapshot, name):
                state.activate(each)
        if by_door or session is None:
            _let_in(state, name)
        active = set(state.active)
        try:
            text = await turn.acall(name, arguments)
        except asyncio.CancelledError:
            progress.give_up()
            if isinstance(approver, AskedAtClient):
                approver.give_up()
            raise
        await progress.told()
        record = turn.records[-1] if turn.records else None
        if (
            isinstance(approver, AskedByRequest)
            and approver.question is not None
            and record is not None
            and record.code == "approval-pending"
        ):
            return await self._in_thread(partial(self._question, approver, caller))
        found = [
            each for exposed, each in state.active.items() if exposed not in active and each.dist != OWN_DIST
        ]
        if session is not None and found and session.find({name_of(state, each): each for each in found}):
            await self._tell(session, state, context)
        late = await self._in_thread(partial(self._inbox, state)) if waits else ()
        return answered(turn, text, found, late)

    async def _listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        caller = self._caller(context)
        session = self._session(context, caller)
        if session is None:  # nothing is kept for it that could change; the stream is open all the same
            return await Listens().handler(context, params)
        if session.listens is None:
            session.listens = Listens()
        if session.told is None:
            session.told = (await self._in_thread(partial(self._offer, caller, session))).mark
        return await session.listens.handler(context, params)

    # turns

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        """Run what may wait for the disk on a thread, so that other requests and pings go on.

        Raises:
            MCPError: it was an expected failure, as where a token's channel is configured no more.
        """
        try:
            return await asyncio.get_running_loop().run_in_executor(self._openers, work)
        except ChalieError as error:
            from mcp.shared.exceptions import MCPError
            from mcp_types import INTERNAL_ERROR

            raise MCPError(INTERNAL_ERROR, f"{error.message} [{error.code}]") from error

    def _begin(
        self, caller: Caller, session: Session | None, approver: Approver | None, **more: Any
    ) -> tuple[Exchange, bool]:
        """Open the turn of one call; tell also whether something waits in its conversation's inbox."""
        turn = self._open(caller, session, approver, **more)
        state = turn.state
        if state.conversation is None:
            return turn, False
        return turn, bool(self._host.ledger.inbox.peek(state.principal, state.conversation))

    def _open(
        self,
        caller: Caller,
        session: Session | None,
        approver: Approver | None,
        *,
        conversation: str | None = None,
        progress: Progressing | None = None,
    ) -> Exchange:
        """Open the turn of one request; what its session found is made active when it is called."""
        if conversation is None and session is not None:
            conversation = session.conversation
        if conversation is None and isinstance(approver, AskedByRequest):
            # the question and its answer come in two requests, which only a conversation ties together
            conversation = f"mcp-{secrets.token_hex(8)}"
        turn = self._host.turn(
            caller.channel,
            principal=caller.principal,
            conversation=conversation,
            approver=approver,
            progress=progress,
            permissions=caller.permissions,
        )
        if turn.state.reader is not None:
            turn.state.activate(turn.state.reader)
        return turn

    def _offer(self, caller: Caller, session: Session | None) -> Offer:
        state = self._open(caller, session, None).state
        found = () if session is None else session.found(state.snapshot)
        return offered(state, found, self._kept)

    def _session(self, context: Context, caller: Caller) -> Session | None:
        """Return what is kept for a request's client; None where it does not say which conversation it is.

        Raises:
            MCPError: the conversation's id cannot be used.
        """
        found = conversation_of(context, caller, self._process)
        return None if found is None else self._sessions.of(found.key, caller, found.id)

    async def _tell(self, session: Session, state: TurnState, context: Context | None = None) -> None:
        """Tell a client that its list of tools is another one, where it is."""
        now = mark(state, session.found(state.snapshot))
        if session.told == now:
            return
        session.told = now
        if session.listens is not None:
            await session.listens.changed()
        if context is not None and not is_modern(context):
            from mcp_types import ToolListChangedNotification

            # along with this very answer, which every client reads
            await context.session.send_notification(ToolListChangedNotification(), context.request_id)
        elif context is None and session.peer is not None:
            await session.peer.send_tool_list_changed()

    # asking

    def _approver(
        self, context: Context, caller: Caller, params: types.CallToolRequestParams, hold: Hold | None
    ) -> Approver | None:
        where = self._host.channels.get(caller.channel)
        if not self._person_at_client or where is None or not where.has_person or not can_ask(context):
            return None
        if not is_modern(context):
            return AskedAtClient(context, caller, asyncio.get_running_loop())
        if hold is None:
            return AskedByRequest(caller)
        from mcp_types import ElicitResult

        brought = (params.input_responses or {}).get(ANSWER)
        return AskedByRequest(caller, hold.id, brought if isinstance(brought, ElicitResult) else None)

    def _brought_back(self, state: str, caller: Caller) -> Hold:
        """Return the hold of a state that a client brings back.

        Raises:
            MCPError: it is not one of ours, was used, is too old, or is another's.
        """
        hold_id = self._states.open(state, caller.id) if self._person_at_client else None
        hold = None if hold_id is None else self._host.ledger.holds.get(hold_id)
        if hold is None or hold.principal != caller.principal or hold.channel != caller.channel:
            raise invalid("requestState is not good here, or not any more: make the call again without it")
        return hold

    def _question(self, approver: AskedByRequest, caller: Caller) -> types.InputRequiredResult:
        from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

        assert approver.question is not None
        message, schema = form(approver.question)
        ask = ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))
        state = self._states.seal(approver.question.id, caller.id)
        return InputRequiredResult(input_requests={ANSWER: ask}, request_state=state)

    def _inbox(self, state: TurnState) -> tuple[str, ...]:
        """Take what became of earlier calls of the conversation."""
        taken = self._host.ledger.inbox.take(state.principal, state.conversation)
        return tuple(message.text for message in taken)


def _asked(arguments: Mapping[str, Any] | None) -> tuple[str, Any] | ToolResult:
    """Return what a call of the door is for: the tool's name, and its arguments as they came."""
    given = arguments or {}
    name = given.get("name")
    if not isinstance(name, str) or not name:
        return ToolResult.error(
            "call_tool takes the name of the tool to call",
            code="missing-params",
            hint='pass the name as find_tools gave it, and the arguments as an object under "arguments"',
        )
    return name, given.get("arguments")


def _let_in(state: TurnState, name: str) -> None:
    """Make an installed tool callable that search could show; the gate decides about it as about any."""
    if not isinstance(resolve(state, name), ToolResult):
        return
    found: tuple[Descriptor, ...] = state.snapshot.resolve(name)
    if len(found) == 1 and found[0].discoverable:
        state.activate(found[0])


def _settled(hold: Hold) -> ToolResult:
    return ToolResult.error(
        f"the call of {hold.name} was answered elsewhere, and is {hold.state}; do not retry",
        code="already-decided",
    )
