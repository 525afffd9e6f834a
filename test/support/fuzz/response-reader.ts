/** A response as it was received. */
export interface RawResponse {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: ReadonlyMap<string, string>;
  /** One character for each byte. */
  readonly body: string;
}

const STATUS_LINE = /^HTTP\/1\.1 ([1-5]\d\d) [ -~]*$/;
const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([\t -~\x80-\xff]*)$/;

/**
 * Reads the responses on one connection, byte for byte and strictly: a wrong length makes the next response
 * unreadable.
 */
export class ResponseReader {
  /** The complete responses, without interim ones. */
  readonly responses: RawResponse[] = [];
  interim = 0;
  /** The flaw of the received bytes, if any. */
  problem: string | undefined;
  #unread = '';

  /** @param isHead whether the request with this number, from 0, is answered without a body */
  constructor(private readonly isHead: (index: number) => boolean = () => false) {}

  /** The bytes after the last complete response. */
  get unread(): string {
    return this.#unread;
  }

  feed(text: string): void {
    this.#unread += text;
    while (this.problem === undefined && this.#next());
  }

  /** Records the end of the connection, which ends a body without a length. */
  end(): void {
    if (this.problem !== undefined || this.#unread === '') return;
    const head = this.#head();
    if (head && endsWithConnection(head)) {
      this.#take(head, this.#unread.slice(head.length), this.#unread.length);
    }
  }

  /** @returns whether there was a complete response */
  #next(): boolean {
    const head = this.#head();
    if (!head) return false;
    const { headers, status, length } = head;
    const rest = this.#unread.slice(length);
    if (status < 200 || status === 204 || status === 304 || this.isHead(this.responses.length)) {
      return this.#take(head, '', length);
    }
    const contentLength = headers.get('content-length');
    const transferEncoding = headers.get('transfer-encoding');
    if (contentLength !== undefined) {
      if (transferEncoding !== undefined) return this.#fail('both lengths');
      if (!/^\d+$/.test(contentLength)) return this.#fail(`Content-Length: ${contentLength}`);
      const bytes = Number(contentLength);
      if (rest.length < bytes) return false;
      return this.#take(head, rest.slice(0, bytes), length + bytes);
    }
    if (transferEncoding === 'chunked') return this.#takeChunks(head, rest);
    return endsWithConnection(head) ? false : this.#fail('no length');
  }

  #takeChunks(head: Head, rest: string): boolean {
    let body = '';
    let at = 0;
    for (;;) {
      const end = rest.indexOf('\r\n', at);
      if (end < 0) return false;
      const size = rest.slice(at, end);
      if (!/^[0-9a-f]+$/i.test(size)) return this.#fail(`chunk of ${JSON.stringify(size)}`);
      const bytes = parseInt(size, 16);
      const next = end + 2 + bytes + 2;
      if (rest.length < next) return false;
      if (rest.slice(next - 2, next) !== '\r\n') return this.#fail('chunk without an end');
      if (bytes === 0) return this.#take(head, body, head.length + next);
      body += rest.slice(end + 2, next - 2);
      at = next;
    }
  }

  #take({ status, headers }: Head, body: string, bytes: number): true {
    this.#unread = this.#unread.slice(bytes);
    if (status < 200) this.interim += 1;
    else this.responses.push({ status, headers, body });
    return true;
  }

  #fail(problem: string): false {
    this.problem = `${problem} in ${JSON.stringify(this.#unread.slice(0, 500))}`;
    return false;
  }

  #head(): Head | undefined {
    const end = this.#unread.indexOf('\r\n\r\n');
    if (end < 0) {
      const start = this.#unread.slice(0, 9);
      if (start !== '' && !'HTTP/1.1 '.startsWith(start)) this.#fail('no response');
      return undefined;
    }
    const [statusLine = '', ...lines] = this.#unread.slice(0, end).split('\r\n');
    const status = STATUS_LINE.exec(statusLine)?.[1];
    if (status === undefined) {
      this.#fail('no response');
      return undefined;
    }
    const headers = new Map<string, string>();
    for (const line of lines) {
      const [, name, value] = HEADER_LINE.exec(line) ?? [];
      if (name === undefined || headers.has(name.toLowerCase())) {
        this.#fail(`header ${JSON.stringify(line)}`);
        return undefined;
      }
      headers.set(name.toLowerCase(), value!);
    }
    return { status: Number(status), headers, length: end + 4 };
  }
}

interface Head {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  /** In bytes, with the empty line. */
  readonly length: number;
}

function endsWithConnection({ headers }: Head): boolean {
  return (
    !headers.has('content-length') &&
    !headers.has('transfer-encoding') &&
    headers.get('connection') === 'close'
  );
}
