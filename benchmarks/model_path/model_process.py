"""The model server: answers at the pace that the model's name says.

python -m benchmarks.model_path.model_process
"""

import asyncio
import json
import time

from aiohttp import web

from benchmarks.model_path.process import announce
from benchmarks.model_path.shapes import WORDS, Pace, chunk, completion, usage_event


async def chat(request: web.Request) -> web.StreamResponse:
    """Answer one call, streamed when it asks for that."""
    body = json.loads(await request.read())
    model = body["model"]
    pace = Pace.of_model(model)
    if not body.get("stream"):
        await asyncio.sleep(pace.total_sec)
        return web.Response(body=completion(model), content_type="application/json")
    due = time.perf_counter() + pace.first_sec
    await asyncio.sleep(pace.first_sec)
    stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await stream.prepare(request)
    await stream.write(chunk(model, {"role": "assistant", "content": ""}))
    for word in WORDS:
        # By the clock: a model's pace does not depend on who listens.
        due += pace.piece_sec
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        await stream.write(chunk(model, {"content": word}))
    end = chunk(model, {}, "stop")
    if (body.get("stream_options") or {}).get("include_usage"):
        end += usage_event(model)
    await stream.write(end + b"data: [DONE]\n\n")
    await stream.write_eof()
    return stream


async def serve() -> None:
    """Serve until standard input ends."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    async for _ in announce({"url": f"http://127.0.0.1:{runner.addresses[0][1]}/v1"}):
        pass


if __name__ == "__main__":
    asyncio.run(serve())
