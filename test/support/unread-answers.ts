import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectOverTls } from 'node:tls';

import { callText } from './bulk-client.js';
import { scrape } from './prometheus-text.js';
import { requestText } from './raw-http.js';
import { trusted } from './trust.js';

const MIB = 1024 * 1024;
const CONNECTIONS = 60;
const REQUESTS = 100;
/** What a replica may take more for answers that nobody reads, with what they leave to the garbage collection. */
const MOST_GROWTH_BYTES = 192 * MIB;

/** The largest file that a service has. */
export const BUNDLE = '/docs/swagger-ui-bundle.js';

type Headers = Readonly<Record<string, string>>;

/** Requests whose answers are much larger than they are, and which count nothing. */
export function largeRequests(headers: Headers): readonly string[] {
  return [
    requestText('GET', BUNDLE, headers),
    requestText('GET', '/openapi.json', headers),
    callText(
      'POST',
      Array.from({ length: 1000 }, () => ({})),
      headers,
    ),
  ];
}

/** Connects, and sends a text. The client reads nothing. */
export async function sendOnly(url: string, text: string): Promise<Socket> {
  const { protocol, hostname: host, port } = new URL(url);
  const isTls = protocol === 'https:';
  const options = { host, port: Number(port) };
  const socket = isTls ? connectOverTls({ ...options, ca: trusted }) : connect(options);
  await once(socket, isTls ? 'secureConnect' : 'connect');
  // The service may cut the connection with a reset.
  socket.on('error', () => undefined).pause();
  socket.write(text);
  return socket;
}

/** Connections with many requests for large answers, of which nothing is read. */
export interface UnreadFlood {
  /** Closes the connections. Throws if the replica takes more memory than it may for such answers. */
  stop(): Promise<void>;
}

export async function floodUnread(url: string): Promise<UnreadFlood> {
  const memory = async (): Promise<number> =>
    (await scrape(url)).value('process_resident_memory_bytes');
  const before = await memory();
  const texts = largeRequests({}).map((text) => text.repeat(REQUESTS));
  const sockets = await Promise.all(
    Array.from({ length: CONNECTIONS }, (_, i) => sendOnly(url, texts[i % texts.length]!)),
  );
  let goesOn = true;
  const growth = async (): Promise<number> => {
    let most = 0;
    while (goesOn) most = Math.max(most, (await memory()) - before);
    return most;
  };
  const grown = growth();
  // It is for `stop` to throw.
  grown.catch(() => undefined);
  return {
    stop: async () => {
      goesOn = false;
      try {
        const bytes = await grown;
        if (bytes > MOST_GROWTH_BYTES) {
          throw new Error(`unread answers take ${Math.round(bytes / MIB)} MiB of a replica`);
        }
      } finally {
        for (const socket of sockets) socket.destroy();
      }
    },
  };
}
