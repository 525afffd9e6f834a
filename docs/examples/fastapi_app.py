import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse
from sluice_client import AsyncSluiceClient, RateLimitMiddleware, SluiceDeniedError

sluice = AsyncSluiceClient(os.environ["SLUICE_URL"])


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    await sluice.close()


app = FastAPI(lifespan=lifespan)
app.add_middleware(
    RateLimitMiddleware, sluice=sluice, key=lambda scope: f"api:tenant={Request(scope).headers.get('X-Tenant')}"
)


async def chat_permit() -> AsyncIterator[None]:
    """Holds a permit until the response is sent, or its client has disconnected."""
    async with sluice.permit("chats", max_wait_millis=10_000):
        yield


@app.exception_handler(SluiceDeniedError)
async def denied(_: Request, error: SluiceDeniedError) -> JSONResponse:
    return JSONResponse({"error": str(error)}, 429, {"Retry-After": str(error.retry_after)})


@app.get("/chat", dependencies=[Depends(chat_permit)])
async def chat() -> StreamingResponse:
    async def words() -> AsyncIterator[str]:
        # In place of a model that streams its answer.
        for word in ["one ", "word ", "at a time\n"]:
            yield word

    return StreamingResponse(words(), media_type="text/plain")


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ["PORT"]), log_level="warning")
