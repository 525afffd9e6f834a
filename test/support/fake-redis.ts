import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';

/** A server that speaks Redis's protocol and gives the replies that a test wants. */
export interface FakeRedis {
  readonly url: string;
  /** The received commands, in capital letters. */
  readonly commands: readonly string[];
  close(): Promise<void>;
}

/** @param replyTo the text of the reply to a command, as it goes over the wire; undefined for `+OK` */
export async function startFakeRedis(
  replyTo: (command: string, args: readonly string[]) => string | undefined,
): Promise<FakeRedis> {
  const commands: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
    let received = '';
    socket.setEncoding('latin1').on('data', (text: string) => {
      received += text;
      for (let call = nextCall(received); call; call = nextCall(received)) {
        received = received.slice(call.length);
        const [name = '', ...args] = call.words;
        const command = name.toUpperCase();
        commands.push(command);
        socket.write(replyTo(command, args) ?? '+OK\r\n', 'latin1');
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    commands,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** The first complete call in the received text: an array of texts, each with its length. */
function nextCall(text: string): { words: string[]; length: number } | undefined {
  const head = /^\*(\d+)\r\n/.exec(text);
  if (!head) return undefined;
  const words: string[] = [];
  let at = head[0].length;
  for (let left = Number(head[1]); left > 0; left -= 1) {
    const length = /^\$(\d+)\r\n/.exec(text.slice(at, at + 20));
    if (!length) return undefined;
    const begin = at + length[0].length;
    at = begin + Number(length[1]) + 2;
    if (at > text.length) return undefined;
    words.push(text.slice(begin, at - 2));
  }
  return { words, length: at };
}
