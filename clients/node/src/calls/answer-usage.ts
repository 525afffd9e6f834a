import type { HitsOf } from '../options.js';

/** A larger JSON body, or event of a stream, is not read. */
const MOST_CHARACTERS = 4_194_304;

interface Usage {
  readonly total_tokens?: unknown;
  readonly input_tokens?: unknown;
  readonly output_tokens?: unknown;
}

interface Answer {
  readonly usage?: Usage;
  readonly message?: Answer;
  readonly response?: Answer;
}

/**
 * The tokens that an answer of OpenAI's or Anthropic's form says were used. The first event of Anthropic's streams has the
 * tokens of the input in `message`, and the last ones have those of the output. The Responses API has all in `response`.
 */
export function tokensIn(answer: Answer): number | undefined {
  const { usage, message, response } = answer;
  const last: Usage | undefined = usage ?? response?.usage;
  if (!last) return undefined;
  const { total_tokens: total, output_tokens: output } = last;
  if (typeof total === 'number') return total;
  const input = last.input_tokens ?? message?.usage?.input_tokens;
  return typeof input === 'number' && typeof output === 'number' ? input + output : undefined;
}

/** Where an event of a stream ends. */
const EVENT_END = /\r?\n\r?\n/;
/** How many characters of it may have come before the last one. */
const LONGEST_END = 3;

/** Reads what the body of an answer says was used, while the body goes to its caller. Its memory is bounded. */
export class UsageReader {
  readonly #isStream: boolean;
  readonly #decoder = new TextDecoder();
  /** The body, or the event of a stream that has not ended; undefined for a body that is not read. */
  #parts: string[] | undefined;
  #length = 0;
  #tail = '';
  readonly #fields = Object.create(null) as Record<string, unknown>;

  constructor(
    { headers }: Pick<Response, 'headers'>,
    private readonly hitsOf: HitsOf,
  ) {
    const type = headers.get('content-type') ?? '';
    this.#isStream = /^text\/event-stream\b/i.test(type);
    const isRead = this.#isStream || /^application\/(?:[\w.-]+\+)?json\b/i.test(type);
    this.#parts = isRead ? [] : undefined;
  }

  add(chunk: Uint8Array): void {
    if (!this.#parts) return;
    const text = this.#decoder.decode(chunk, { stream: true });
    const end = this.#tail + text;
    this.#tail = end.slice(-LONGEST_END);
    this.#parts.push(text);
    this.#length += text.length;
    if (this.#isStream && EVENT_END.test(end)) {
      const events = this.#parts.join('').split(EVENT_END);
      const next = events.pop() ?? '';
      for (const event of events) this.#takeEvent(event);
      this.#parts = [next];
      this.#length = next.length;
    }
    if (this.#length > MOST_CHARACTERS) this.#parts = undefined;
  }

  /** @returns a whole number from 0; undefined if the answer does not say what it has cost */
  hits(): number | undefined {
    const text = this.#parts?.join('');
    if (text === undefined) return undefined;
    if (this.#isStream) this.#takeEvent(text);
    else this.#take(text);
    try {
      const hits = Math.ceil(this.hitsOf(this.#fields) ?? NaN);
      return hits >= 0 && Number.isSafeInteger(hits) ? hits : undefined;
    } catch {
      return undefined;
    }
  }

  #takeEvent(event: string): void {
    const lines = event.split(/\r?\n/).filter((line) => line.startsWith('data:'));
    this.#take(lines.map((line) => line.slice('data:'.length)).join('\n'));
  }

  #take(text: string): void {
    let fields: unknown;
    try {
      fields = JSON.parse(text);
    } catch {
      // Such as `[DONE]`, with which streams of OpenAI end, or a body that was cut.
      return;
    }
    if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) return;
    for (const [name, value] of Object.entries(fields)) {
      if (value !== null) this.#fields[name] = value;
    }
  }
}
