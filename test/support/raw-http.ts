import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectOverTls } from 'node:tls';

import { trusted } from './trust.js';
import { until } from './until.js';

/** A connection on which a test writes HTTP by hand. */
export interface RawConnection {
  /** Everything received so far, one character for each byte. */
  readonly received: string;
  /** Settles when both sides have closed. */
  readonly closed: Promise<void>;
  write(text: string): void;
  /** Resolves when the received text matches. */
  receives(pattern: RegExp): Promise<void>;
  /** Ends the sending side of the connection, which can still receive. */
  end(): void;
  disconnect(): void;
}

/** @param from the address to connect from, if that matters */
export async function openConnection(url: string, from?: string): Promise<RawConnection> {
  const { protocol, hostname: host, port } = new URL(url);
  const plain = { host, port: Number(port), ...(from !== undefined && { localAddress: from }) };
  const socket = protocol === 'https:' ? openTls(host, port) : connect(plain);
  await once(socket, protocol === 'https:' ? 'secureConnect' : 'connect');
  let received = '';
  socket.setEncoding('latin1').on('data', (text: string) => (received += text));
  // The service may close the connection with a reset.
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      resolve();
    });
  });
  return {
    get received() {
      return received;
    },
    closed,
    write: (text) => void socket.write(text, 'latin1'),
    receives: async (pattern) => {
      await until(() => {
        if (pattern.test(received)) return true;
        if (socket.destroyed) throw new Error(`closed after ${JSON.stringify(received)}`);
        return false;
      });
    },
    end: () => void socket.end(),
    disconnect: () => void socket.destroy(),
  };
}

function openTls(host: string, port: string): Socket {
  return connectOverTls({ host, port: Number(port), ca: trusted });
}

/** The text of a request without a body. */
export function requestText(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${lines.join('')}\r\n`;
}
