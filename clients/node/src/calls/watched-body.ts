import { clearTimeout, setTimeout } from 'node:timers';

/** How much of a body is read before its caller asks for it, so that a short body ends although nobody reads it. */
const READ_AHEAD_BYTES = 65_536;

interface Watching {
  /** Gets each chunk before the caller does. */
  readonly onChunk?: ((chunk: Uint8Array) => void) | undefined;
  /** How long the caller may leave a body unread that has not ended. No limit by default. */
  readonly unreadMillis?: number | undefined;
  /** Returns the error of the body once that time is over. */
  readonly unread?: (() => Error) | undefined;
  /** Returns the error of the body if reading it fails. */
  readonly failure: (error: unknown) => unknown;
}

/** A body that says when it is over. */
export interface WatchedBody {
  /** The body for the caller. */
  readonly stream: ReadableStream<Uint8Array>;
  /** Fulfilled once the body has been received, has failed, or is cancelled. */
  readonly over: Promise<void>;
}

/** Watches a body, of which it keeps 64 KiB and a chunk at most. */
export function watchedBody(body: ReadableStream<Uint8Array>, watching: Watching): WatchedBody {
  const isOfBytes = hasBytes(body);
  const reader = body.getReader();
  const kept: Uint8Array[] = [];
  let keptBytes = 0;
  let isReading = false;
  let isOver = false;
  let failed: { readonly error: unknown } | undefined;
  let news: (() => void) | undefined;
  let timer: NodeJS.Timeout | undefined;
  let end!: () => void;
  const over = new Promise<void>((resolve) => (end = resolve));

  const finish = (): void => {
    isOver = true;
    clearTimeout(timer);
    news?.();
    end();
  };
  const readAhead = async (): Promise<void> => {
    if (isReading) return;
    isReading = true;
    try {
      while (!isOver && keptBytes < READ_AHEAD_BYTES) {
        const { done, value } = await reader.read();
        if (done) finish();
        // A stream of bytes takes no empty chunk.
        else if (value.byteLength > 0) {
          watching.onChunk?.(value);
          kept.push(value);
          keptBytes += value.byteLength;
          news?.();
        }
      }
    } catch (error) {
      failed ??= { error: watching.failure(error) };
      finish();
    }
    isReading = false;
  };
  /** From now on the caller reads nothing. */
  const leave = (): void => {
    const { unreadMillis, unread } = watching;
    if (isOver || unreadMillis === undefined) return;
    timer = setTimeout(() => {
      failed = { error: unread?.() };
      reader.cancel().catch(() => undefined);
      finish();
    }, unreadMillis).unref();
  };
  const source = {
    async pull(
      controller: Pick<ReadableByteStreamController, 'enqueue' | 'close' | 'error'> & {
        byobRequest?: ReadableStreamBYOBRequest | null;
      },
    ): Promise<void> {
      clearTimeout(timer);
      void readAhead();
      while (kept.length === 0 && !isOver) {
        await new Promise<void>((resolve) => (news = resolve));
      }
      const chunk = kept.shift();
      if (chunk) {
        keptBytes -= chunk.byteLength;
        controller.enqueue(chunk);
        leave();
      } else if (failed) {
        controller.error(failed.error);
      } else {
        controller.close();
        controller.byobRequest?.respond(0);
      }
    },
    async cancel(reason: unknown): Promise<void> {
      finish();
      await reader.cancel(reason);
    },
  };
  leave();
  void readAhead();
  const stream = isOfBytes
    ? new ReadableStream({ ...source, type: 'bytes' })
    : new ReadableStream<Uint8Array>(source, { highWaterMark: 0 });
  return { stream, over };
}

/** Whether a stream owns the memory of its chunks, so that it may be passed on. */
function hasBytes(body: ReadableStream<Uint8Array>): boolean {
  try {
    body.getReader({ mode: 'byob' }).releaseLock();
    return true;
  } catch {
    return false;
  }
}

/** An answer that is the same as another one but for its body. */
export function answerWith(body: ReadableStream<Uint8Array>, answer: Response): Response {
  const { headers, ok, redirected, status, statusText, type, url } = answer;
  const response = new Response(body, { headers });
  const clone = (): Response => {
    const copy = Response.prototype.clone.call(response);
    return answerWith(copy.body ?? body, answer);
  };
  const own = { headers, ok, redirected, status, statusText, type, url, clone };
  for (const [name, value] of Object.entries(own)) {
    Object.defineProperty(response, name, { value, configurable: true });
  }
  return response;
}
