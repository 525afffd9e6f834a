import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, Socket } from 'node:net';

import { Server, ServerCredentials } from '@grpc/grpc-js';
import express from 'express';
import { Cluster, Command, Redis, SentinelConnector } from 'ioredis';
import { StandaloneConnector } from 'ioredis/built/connectors/index.js';
import { DEFAULT_REDIS_OPTIONS } from 'ioredis/built/redis/RedisOptions.js';

import { http2ServerOf } from '../../../src/grpc/grpc-port.js';
import { startFakeRedis } from '../../support/fake-redis.js';

// The parts of other packages that Sluice uses although they are not public. Any release may change them, so
// package.json names one version of each of these packages, and this file shows that the parts are there.

interface PrivatePart {
  readonly package: string;
  readonly part: string;
  /** Below `src`. */
  readonly file: string;
  readonly why: string;
  readonly isThere: () => boolean | Promise<boolean>;
}

/** What `of` returns for a request of a server of Node, and its answer. */
async function inHandler<T>(of: (request: IncomingMessage, response: ServerResponse) => T) {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const asked = get({
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    agent: false,
  });
  asked.on('error', () => undefined);
  const [request, response] = (await once(server, 'request')) as [IncomingMessage, ServerResponse];
  const found = of(request, response);
  response.end();
  server.close();
  return found;
}

async function isConnected(holds: (client: Redis) => boolean): Promise<boolean> {
  const fake = await startFakeRedis(() => undefined);
  const client = new Redis(fake.url, { enableReadyCheck: false });
  await client.ping();
  const does = holds(client);
  client.disconnect();
  await fake.close();
  return does;
}

const hasMethods = (prototype: object, ...names: string[]): boolean =>
  names.every((name) => typeof (prototype as Record<string, unknown>)[name] === 'function');

const PARTS: readonly PrivatePart[] = [
  {
    package: 'ioredis',
    part: 'StandaloneConnector',
    file: 'redis/connections/ioredis-changes.ts',
    why: 'no option passes a look-up of host names on, or reaches the sockets of all clients',
    isThere: () => hasMethods(StandaloneConnector.prototype, 'connect'),
  },
  {
    package: 'ioredis',
    part: 'connectToSentinel',
    file: 'redis/connections/ioredis-changes.ts',
    why: 'the same for sentinels, which give no reason if they can not be reached',
    isThere: () =>
      hasMethods(SentinelConnector.prototype, 'connect', 'resolve', 'connectToSentinel'),
  },
  {
    package: 'ioredis',
    part: 'DEFAULT_REDIS_OPTIONS',
    file: 'redis/connections/ioredis-changes.ts',
    why: 'no option of a cluster or of sentinels reaches all clients',
    isThere: () => 'disableClientInfo' in DEFAULT_REDIS_OPTIONS,
  },
  {
    package: 'ioredis',
    part: 'asking',
    file: 'redis/connections/ioredis-changes.ts',
    why: 'nothing in ioredis awaits the command, so its failure would end the process',
    isThere: () => hasMethods(Redis.prototype, 'asking'),
  },
  {
    package: 'ioredis',
    part: 'commandQueue',
    file: 'redis/connections/silence.ts',
    why: 'it shows whether replies are missing',
    isThere: () => isConnected(({ commandQueue }) => commandQueue.length === 0),
  },
  {
    package: 'ioredis',
    part: 'stream',
    file: 'redis/connections/silence.ts',
    why: 'its count of bytes shows whether anything arrives',
    isThere: () => isConnected(({ stream }) => stream instanceof Socket),
  },
  {
    package: 'ioredis',
    part: 'slots',
    file: 'redis/connections/cluster-connections.ts',
    why: 'ioredis does not say which node has the slot of a name',
    isThere: () => Array.isArray(new Cluster([], { lazyConnect: true }).slots),
  },
  {
    package: 'ioredis',
    part: 'this.args',
    file: 'redis/scripts/script-client.ts',
    why: 'a command whose words are texts is not flattened and converted',
    isThere: () => {
      const command = new Command('get', []);
      command.args = ['word'];
      return String(command.toWritable(new Socket())).includes('word');
    },
  },
  {
    package: '@grpc/grpc-js',
    part: 'http2Servers',
    file: 'grpc/grpc-port.ts',
    why: 'there are no options for the bounds of sessions and streams',
    isThere: async () => {
      const server = new Server();
      const credentials = ServerCredentials.createInsecure();
      await new Promise((resolve) => {
        server.bindAsync('127.0.0.1:0', credentials, resolve);
      });
      const isFound = http2ServerOf(server).listening;
      server.forceShutdown();
      return isFound;
    },
  },
  {
    package: 'express',
    part: 'app.request',
    file: 'http/server/server.ts',
    why: 'a message that has this prototype from the start is fast',
    isThere: () => {
      const app = express();
      const isPrototype = (own: object, of: object): boolean => Object.getPrototypeOf(own) === of;
      return (
        isPrototype(app.request, express.request) && isPrototype(app.response, express.response)
      );
    },
  },
  {
    package: 'node',
    part: '_httpMessage',
    file: 'http/intake/connection-state.ts',
    why: 'there is no public name for the first answer that has not gone out',
    isThere: () =>
      inHandler(({ socket }, response) => Reflect.get(socket, '_httpMessage') === response),
  },
  {
    package: 'node',
    part: '_paused',
    file: 'http/intake/connection-state.ts',
    why: 'it shows that Node does not read a connection because of unanswered requests; isPaused() is also true within a body',
    isThere: () => inHandler(({ socket }) => Reflect.get(socket, '_paused') === false),
  },
  {
    package: 'node',
    part: 'sendDate',
    file: 'grpc/gateway-call.ts',
    why: 'an answer over HTTP/2 has a date otherwise',
    isThere: async () => {
      const server = createHttp2Server().listen(0, '127.0.0.1');
      await once(server, 'listening');
      const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      session.request({ ':path': '/' });
      const [stream] = (await once(server, 'stream')) as [ServerHttp2Stream];
      const options = { endStream: true, sendDate: false };
      stream.respond({}, options);
      session.destroy();
      server.close();
      return !('date' in stream.sentHeaders);
    },
  },
  {
    package: 'node',
    part: '--no-allocation-site-pretenuring',
    file: 'common/young-objects.ts',
    why: 'otherwise V8 creates the objects of requests in the old generation',
    isThere: () =>
      spawnSync(process.execPath, ['--v8-options'], { encoding: 'utf8' }).stdout.includes(
        '--allocation-site-pretenuring',
      ),
  },
];

const packages = [...new Set(PARTS.map((each) => each.package))].filter((name) => name !== 'node');

test.each(PARTS)('$package has $part, which $file uses', async ({ part, file, isThere }) => {
  expect(readFileSync(`src/${file}`, 'utf8')).toContain(part);
  expect(await isThere()).toBe(true);
});

test.each(packages)('package.json names the one version of %s that is tested', (name) => {
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    dependencies: Readonly<Record<string, string>>;
  };
  const installed = JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8')) as {
    version: string;
  };

  expect(dependencies[name]).toBe(installed.version);
});

test('no other file imports a file of a package that has private parts', () => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' });
  const importing = files.filter((file) => {
    if (!file.endsWith('.ts')) return false;
    const text = readFileSync(`src/${file}`, 'utf8');
    // The extension is public.
    return packages.some((name) => text.replace('protobufjs/ext/', '').includes(`from '${name}/`));
  });

  expect(importing.filter((file) => !PARTS.some((each) => each.file === file))).toEqual([]);
});
