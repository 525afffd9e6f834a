import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

import { METHOD_PATH } from './grpc-raw.js';
import { until } from './until.js';

/** https://www.rfc-editor.org/rfc/rfc9113#section-6 */
export const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goAway: 7 } as const;
export const ERROR_CODE = { none: 0, refusedStream: 7, cancel: 8, enhanceYourCalm: 11 } as const;
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** SETTINGS_HEADER_TABLE_SIZE */
const NO_TABLE = Buffer.from([0, 1, 0, 0, 0, 0]);
/** SETTINGS_INITIAL_WINDOW_SIZE */
const NO_WINDOW = Buffer.from([0, 4, 0, 0, 0, 0]);
const END_STREAM = 1;
const ACK = 1;
const END_HEADERS = 4;
const HEAD_BYTES = 9;
/** Indexes in the static table of HPACK: https://www.rfc-editor.org/rfc/rfc7541#appendix-A */
const POST = 3;
const SCHEME_HTTP = 6;
/** Must follow if the server forbids a table: https://www.rfc-editor.org/rfc/rfc7541#section-4.2 */
const TABLE_OF_NOTHING = Buffer.from([0x20]);
/** The index of the header that was added to the dynamic table last. */
const ADDED_LAST = 62;

type Header = readonly [name: string, value: string];

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

interface HeadersOptions {
  readonly path?: string;
  readonly headers?: readonly Header[];
  /** A header for HPACK's dynamic table, and how often the request has it. */
  readonly repeated?: { readonly header: Header; readonly times: number };
}

/** A connection on which a test writes each frame of HTTP/2 by hand. */
export class FrameConnection {
  readonly received: Frame[] = [];
  readonly closed: Promise<void>;
  #rest: Buffer = Buffer.alloc(0);
  #nextStream = 1;
  #hasAdded = false;
  #acknowledges = false;
  #mustShrinkTable = false;

  static async open(port: number): Promise<FrameConnection> {
    // Otherwise the system keeps a second frame back until the first is acknowledged, up to 40 ms later.
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    await once(socket, 'connect');
    return new FrameConnection(socket);
  }

  private constructor(private readonly socket: Socket) {
    // The service may close the connection with a reset.
    socket.on('error', () => undefined);
    socket.on('data', (bytes: Buffer) => {
      this.#read(bytes);
    });
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        resolve();
      });
    });
  }

  get isClosed(): boolean {
    return this.socket.closed;
  }

  write(bytes: Buffer): void {
    this.socket.write(bytes);
  }

  /**
   * @param options.acknowledges without it the settings of the server do not bind the client
   * @param options.takesAnswers without it the server may send no bytes on any stream
   */
  begin({ acknowledges = true, takesAnswers = true } = {}): void {
    this.write(PREFACE);
    this.write(frame(FRAME.settings, 0, 0, takesAnswers ? Buffer.alloc(0) : NO_WINDOW));
    this.#acknowledges = acknowledges;
  }

  /** Begins a stream without sending its message. @returns its number */
  openStream({ path = METHOD_PATH, headers = [], repeated }: HeadersOptions = {}): number {
    const stream = this.#nextStream;
    this.#nextStream += 2;
    const parts = [
      ...(this.#mustShrinkTable ? [TABLE_OF_NOTHING] : []),
      number(POST, 7, 0x80),
      number(SCHEME_HTTP, 7, 0x80),
      ...[
        [':path', path],
        [':authority', 'test'],
        ['content-type', 'application/grpc'],
        ['te', 'trailers'],
        ...headers,
      ].map((header) => literal(header as Header, 0)),
    ];
    this.#mustShrinkTable = false;
    if (repeated) {
      let { times } = repeated;
      if (!this.#hasAdded) {
        this.#hasAdded = true;
        parts.push(literal(repeated.header, 0x40));
        times -= 1;
      }
      for (; times > 0; times -= 1) parts.push(number(ADDED_LAST, 7, 0x80));
    }
    this.write(frame(FRAME.headers, END_HEADERS, stream, Buffer.concat(parts)));
    return stream;
  }

  send(stream: number, bytes: Buffer, { isLast = false } = {}): void {
    this.write(frame(FRAME.data, isLast ? END_STREAM : 0, stream, bytes));
  }

  reset(stream: number): void {
    this.write(frame(FRAME.reset, 0, stream, Buffer.from([0, 0, 0, ERROR_CODE.cancel])));
  }

  framesOf(stream: number): Frame[] {
    return this.received.filter((one) => one.stream === stream);
  }

  /** The error code that a stream was reset with. */
  async codeOf(stream: number): Promise<number> {
    const reset = await until(() => {
      const found = this.framesOf(stream).find(({ type }) => type === FRAME.reset);
      if (!found && this.isClosed) throw new Error('closed before the stream was reset');
      return found;
    });
    return reset.payload.readUInt32BE();
  }

  /** Resolves when the server has read everything that was written before. */
  async settle(): Promise<void> {
    const id = Buffer.alloc(8, this.received.length & 0xff);
    const before = this.received.length;
    this.write(frame(FRAME.ping, 0, 0, id));
    await until(
      () =>
        this.isClosed ||
        this.received.slice(before).some(({ type, flags }) => type === FRAME.ping && flags === ACK),
    );
  }

  close(): void {
    this.socket.destroy();
  }

  #read(bytes: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    for (;;) {
      if (this.#rest.length < HEAD_BYTES) return;
      const end = HEAD_BYTES + this.#rest.readUIntBE(0, 3);
      if (this.#rest.length < end) return;
      const type = this.#rest.readUInt8(3);
      const flags = this.#rest.readUInt8(4);
      const stream = this.#rest.readUInt32BE(5);
      this.received.push({ type, flags, stream, payload: this.#rest.subarray(HEAD_BYTES, end) });
      this.#rest = this.#rest.subarray(end);
      if (type === FRAME.settings && flags !== ACK && this.#acknowledges) {
        this.write(frame(FRAME.settings, ACK, 0));
        this.#mustShrinkTable = this.received.at(-1)!.payload.includes(NO_TABLE);
      }
    }
  }
}

/** Connections for the tests of one file, each of which ends with its test. */
export function useFrameConnections(): (at: {
  readonly grpcPort: number;
}) => Promise<FrameConnection> {
  const connections: FrameConnection[] = [];
  afterEach(() => {
    for (const connection of connections.splice(0)) connection.close();
  });
  return async ({ grpcPort }) => {
    const connection = await FrameConnection.open(grpcPort);
    connections.push(connection);
    return connection;
  };
}

function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** @param first the bits of the first byte before the bits of the number */
function number(value: number, bits: number, first: number): Buffer {
  const most = 2 ** bits - 1;
  if (value < most) return Buffer.from([first | value]);
  const bytes = [first | most];
  let rest = value - most;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}

/** @param first 0x40 to add it to the dynamic table */
function literal([name, value]: Header, first: number): Buffer {
  return Buffer.concat([Buffer.from([first]), text(name), text(value)]);
}

function text(value: string): Buffer {
  return Buffer.concat([number(Buffer.byteLength(value), 7, 0), Buffer.from(value)]);
}
