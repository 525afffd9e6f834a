// Calls of Envoy's protocol, as Envoy makes them: many under way on a few connections, those of a tick in one write, and
// headers by their index. The frames are written here: a client of node:http2 takes more of the processor than the
// programs that it is to measure. A run with a wrong answer measures nothing, and fails.
import { Buffer } from 'node:buffer';
import { connect } from 'node:net';
import { createHistogram } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';

const CONNECTIONS = 4;
const CALLS_PER_CONNECTION = 16;
const CALLS = CONNECTIONS * CALLS_PER_CONNECTION;

/** The types and flags of frames: https://www.rfc-editor.org/rfc/rfc9113#section-6 */
const [DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE] = [0, 1, 3, 4, 6, 7, 8];
const [ACK, END_STREAM, END_HEADERS] = [1, 1, 4];
const HEAD_BYTES = 9;
const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
/** More than the answers of a run have. */
const WINDOW = 2 ** 30;

/** Of HPACK's static table: the method and the scheme. The other headers, by a name's index there or by the name: */
const STATIC = Buffer.of(0x83, 0x86);
const OTHERS = [
  [4, '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'],
  [1, '127.0.0.1'],
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
  ['grpc-timeout', '1S'],
];
/** A connection's own table has the headers that were added to it from here on, the last one first. */
const FIRST_ADDED = 62;
const [ADD, ADD_NOT, INDEXED, WITHOUT_TABLE] = [0x40, 0, 0x80, 0x20];
const HEADER_TABLE_SIZE = 1;
const ADDING = headers(ADD);
const BY_INDEX = Buffer.concat([
  STATIC,
  Buffer.from(OTHERS.map((_, i) => INDEXED + FIRST_ADDED + i)).reverse(),
]);
const IN_FULL = headers(ADD_NOT);

/** A reply begins with its frame, and its first field is the code: OK is 1. Calls that fail have no reply. */
const CODE_AT = 5;
const OK = Buffer.from('0801', 'hex');

/**
 * @param {number} port
 * @param {{keys: number, seconds: number, perSecond?: number}} load keys are drawn at random; `perSecond`: callers pause,
 *   so that they make about this many calls
 */
export async function callRls(port, { keys, seconds, perSecond }) {
  const requests = Array.from({ length: keys }, (_, i) => requestFor(`key-${i + 1}`));
  let answers = 0;
  const latencies = createHistogram();
  const pauseMillis = perSecond === undefined ? 0 : (1000 * CALLS) / perSecond;
  const endsAt = performance.now() + seconds * 1000;
  const connections = await Promise.all(
    Array.from({ length: CONNECTIONS }, () => Connection.open(port)),
  );
  const caller = async (connection) => {
    let next = performance.now() + Math.random() * pauseMillis;
    while (performance.now() < endsAt) {
      if (pauseMillis > 0) {
        const wait = next - performance.now();
        next += pauseMillis;
        if (wait > 0) await delay(wait);
      }
      const begun = performance.now();
      await connection.call(requests[Math.floor(Math.random() * keys)]);
      answers += 1;
      latencies.record(Math.max(1, Math.round((performance.now() - begun) * 1000)));
    }
  };
  try {
    await Promise.all(
      connections.flatMap((connection) =>
        Array.from({ length: CALLS_PER_CONNECTION }, () => caller(connection)),
      ),
    );
  } catch (error) {
    throw new Error(`port ${port}: a call has a wrong answer: ${error.message}`, { cause: error });
  } finally {
    for (const connection of connections) connection.end();
  }
  return { answers, perSecond: answers / seconds, p99Micros: latencies.percentile(99) };
}

/** A connection that speaks as much of HTTP/2 as calls of one small message each way need. */
class Connection {
  #socket;
  #streamId = -1;
  #calls = new Map();
  #unsent = [];
  #rest = Buffer.of();
  #hasSettings = new Promise((resolve, reject) => this.#calls.set(0, { resolve, reject }));

  /** The headers of the next call, and of later ones. */
  #first = ADDING;
  #later = BY_INDEX;

  static async open(port) {
    const connection = new Connection(connect({ host: '127.0.0.1', port, noDelay: true }));
    await connection.#hasSettings;
    return connection;
  }

  constructor(socket) {
    this.#socket = socket;
    socket.on('data', (piece) => this.#read(piece));
    socket.on('error', (error) => this.#failAll(error.message));
    socket.on('close', () => this.#failAll('the connection has ended'));
    const window = Buffer.alloc(4);
    window.writeUInt32BE(WINDOW);
    const begin = [frame(SETTINGS, 0, 0), frame(WINDOW_UPDATE, 0, 0, window)];
    socket.write(Buffer.concat([Buffer.from(PREFACE), ...begin]));
  }

  /** Resolves when the call is approved. */
  call(request) {
    this.#streamId += 2;
    const id = this.#streamId;
    this.#send(frame(HEADERS, END_HEADERS, id, this.#first));
    this.#first = this.#later;
    this.#send(frame(DATA, END_STREAM, id, request));
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject, reply: Buffer.of() });
    });
  }

  end() {
    this.#socket.destroy();
  }

  #send(bytes) {
    if (this.#unsent.push(bytes) > 1) return;
    // After all promises of this tick, and so after all calls that its answers let begin.
    process.nextTick(() => {
      this.#socket.write(Buffer.concat(this.#unsent));
      this.#unsent = [];
    });
  }

  #read(piece) {
    const bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
    let at = 0;
    while (bytes.length - at >= HEAD_BYTES) {
      const end = at + HEAD_BYTES + bytes.readUIntBE(at, 3);
      if (end > bytes.length) break;
      const id = bytes.readUInt32BE(at + 5);
      this.#readFrame(bytes[at + 3], bytes[at + 4], id, bytes.subarray(at + HEAD_BYTES, end));
      at = end;
    }
    this.#rest = bytes.subarray(at);
  }

  #readFrame(type, flags, id, content) {
    if (type === GOAWAY) this.#failAll(`the connection ends: ${content.toString('latin1')}`);
    else if (type === SETTINGS && !(flags & ACK)) this.#accept(content);
    else if (type === PING && !(flags & ACK)) this.#send(frame(PING, ACK, 0, content));
    const call = id > 0 && this.#calls.get(id);
    if (!call) return;
    if (type === DATA) call.reply = Buffer.concat([call.reply, content]);
    if (type !== RST_STREAM && !((type === HEADERS || type === DATA) && flags & END_STREAM)) return;
    this.#calls.delete(id);
    if (type === HEADERS && call.reply.subarray(CODE_AT, CODE_AT + OK.length).equals(OK)) {
      call.resolve();
    } else {
      call.reject(new Error(`frame ${type}, reply ${call.reply.toString('hex')}`));
    }
  }

  /** Acknowledges settings. A server may want no table, which the next headers have to say. */
  #accept(settings) {
    this.#send(frame(SETTINGS, ACK, 0));
    for (let at = 0; at < settings.length; at += 6) {
      if (settings.readUInt16BE(at) !== HEADER_TABLE_SIZE || settings.readUInt32BE(at + 2) > 0)
        continue;
      this.#first = Buffer.concat([Buffer.of(WITHOUT_TABLE), IN_FULL]);
      this.#later = IN_FULL;
    }
    this.#calls.get(0)?.resolve();
    this.#calls.delete(0);
  }

  #failAll(reason) {
    for (const { reject } of this.#calls.values()) reject(new Error(reason));
    this.#calls.clear();
  }
}

function frame(type, flags, streamId, content = Buffer.of()) {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES + content.length);
  bytes.writeUIntBE(content.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(streamId, 5);
  content.copy(bytes, HEAD_BYTES);
  return bytes;
}

/**
 * The headers of a call: https://www.rfc-editor.org/rfc/rfc7541#section-6.2
 * @param way whether they are added to the connection's table
 */
function headers(way) {
  const literal = (text) => Buffer.concat([Buffer.of(text.length), Buffer.from(text)]);
  const named = ([name, value]) =>
    typeof name === 'number'
      ? Buffer.concat([Buffer.of(way + name), literal(value)])
      : Buffer.concat([Buffer.of(way), literal(name), literal(value)]);
  return Buffer.concat([STATIC, ...OTHERS.map(named)]);
}

/** A request of the domain `bench` with one descriptor of one entry, in its frame. */
function requestFor(value) {
  const entry = message([1, 'key'], [2, value]);
  const request = message([1, 'bench'], [2, message([1, entry])]);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(request.length, 1);
  return Buffer.concat([head, request]);
}

/** A message of fields that are texts or messages, all of fewer than 128 bytes. */
function message(...fields) {
  return Buffer.concat(
    fields.map(([number, content]) => {
      const bytes = Buffer.from(content);
      return Buffer.concat([Buffer.of((number << 3) | 2, bytes.length), bytes]);
    }),
  );
}
