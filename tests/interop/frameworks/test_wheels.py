"""Each plugin as a person gets it: its wheel, installed with its framework into a fresh environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import wheels as building

#: dist -> a program of two model requests that prints what the second one was offered.
PROGRAMS = {
    "chalie-pydantic-ai": """
        from chalie_pydantic_ai import Chalie
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
        from pydantic_ai.models.function import FunctionModel

        def model(messages, info):
            if any(isinstance(message, ModelResponse) for message in messages):
                print(*(tool.name for tool in info.function_tools))
                return ModelResponse(parts=[TextPart("done")])
            return ModelResponse(parts=[ToolCallPart("find_tools", {"query": ["weather"]})])

        Agent(FunctionModel(model), capabilities=[Chalie(host)]).run_sync("go")
    """,
    "chalie-langchain": """
        from chalie_langchain import ChalieMiddleware
        from langchain.agents import create_agent
        from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
        from langchain_core.messages import AIMessage

        class Model(GenericFakeChatModel):
            def bind_tools(self, tools, **_):
                print(*(tool.name for tool in tools))
                return self

        call = {"name": "find_tools", "args": {"query": ["weather"]}, "id": "1"}
        model = Model(messages=iter([AIMessage(content="", tool_calls=[call]), AIMessage(content="done")]))
        create_agent(model, middleware=[ChalieMiddleware(host)]).invoke({"messages": [("user", "go")]})
    """,
    "chalie-openai-agents": """
        import asyncio
        from agents import RunConfig
        from agents.testing import ScriptedModel, assistant_message, function_call
        from chalie_openai_agents import Chalie, ChalieAgent

        call = function_call("find_tools", {"query": ["weather"]}, call_id="1")
        model = ScriptedModel([[call], [assistant_message("done")]])
        agent = ChalieAgent(name="helper", model=model)
        config = RunConfig(tracing_disabled=True)
        asyncio.run(Chalie(host).run(agent, "go", conversation="monday", run_config=config))
        print(*(tool.name for tool in model.calls[-1].tools))
    """,
    "chalie-llm": """
        import llm
        from chalie_llm import Chalie, chain

        class Model(llm.Model):
            model_id = "fake"
            supports_tools = True
            asked = 0

            def execute(self, prompt, stream, response, conversation):
                self.asked += 1
                if self.asked == 1:
                    response.add_tool_call(llm.ToolCall("find_tools", {"query": ["weather"]}, "1"))
                else:
                    print(*(tool.name for tool in prompt.tools))
                yield ""

        assert llm.get_tools()["Chalie"] is Chalie
        chain(Model(), "go", chalie=Chalie(host=host))
    """,
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels of the host, its model, one tool and the plugins."""
    folder = tmp_path_factory.mktemp("wheels")
    wanted = {"chalie-model-static", "chalie-ability-weather", *PROGRAMS}
    for project in building.projects():
        if project == building.ROOT or project.name in wanted:
            building.build(project, folder)
    return folder


@pytest.mark.parametrize("dist", PROGRAMS)
def test_the_wheel_installs_with_its_framework_and_works(built: Path, tmp_path: Path, dist: str) -> None:
    python = building.environment(tmp_path / "venv", dist, "chalie-ability-weather", find_links=built)
    code = [line.removeprefix(" " * 8) for line in PROGRAMS[dist].splitlines()]
    program = "\n".join(["from chalie import Host", "host = Host.open()", *code, "host.close()"])
    env = building.clean_environment(tmp_path / "home", LLM_USER_PATH=str(tmp_path))
    done = building.checked([str(python), "-c", program], env=env, cwd=tmp_path)
    offered = done.stdout.splitlines()[-1].split()
    assert {"find_tools", "weather"} <= set(offered)
