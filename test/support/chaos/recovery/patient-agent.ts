import { once } from 'node:events';
import { Agent, type ClientRequestArgs } from 'node:http';
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { Duplex } from 'node:stream';

const MOST_UNANSWERED = 100;
/** Earlier than the service closes a connection that is idle. */
const UNUSED_MILLIS = 20_000;
const GREETING = 'GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n';

/**
 * Keeps connections, and makes only some at a time: each is made when the service has answered on it. Where more than
 * its backlog wait to be accepted, the kernel loses or resets some of them.
 */
export class PatientAgent extends Agent {
  #unanswered = 0;
  readonly #waiting: (() => void)[] = [];

  constructor() {
    super({ keepAlive: true, maxFreeSockets: Infinity, timeout: UNUSED_MILLIS });
  }

  override createConnection(
    options: ClientRequestArgs,
    callback?: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    void this.#open(options as TcpNetConnectOpts, (error, socket) => callback?.(error, socket));
  }

  async #open(
    options: TcpNetConnectOpts,
    callback: (error: Error | null, socket: Socket) => void,
  ): Promise<void> {
    while (this.#unanswered >= MOST_UNANSWERED) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#unanswered += 1;
    const socket = connect(options);
    try {
      socket.write(GREETING);
      await once(socket, 'data');
      callback(null, socket);
    } catch (error) {
      callback(error as Error, socket);
    } finally {
      this.#unanswered -= 1;
      this.#waiting.shift()?.();
    }
  }
}
