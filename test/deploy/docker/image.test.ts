import { readFileSync } from 'node:fs';

import { send } from '../../support/http-client.js';
import { describeWithDocker, docker, untilHealthy } from '../../support/docker.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { buildImage, IMAGE } from './build-image.js';

const BUILD_TIMEOUT_MILLIS = 300_000;

/** As in production: a read-only file system, no rights, little memory. */
const RESTRICTED = [
  '--read-only',
  '--cap-drop=ALL',
  '--security-opt=no-new-privileges',
  '--memory=256m',
];

interface Lock {
  readonly packages: Readonly<
    Record<string, { readonly dev?: boolean; readonly optional?: boolean }>
  >;
}

describeWithDocker('the image', () => {
  const containers: string[] = [];
  beforeAll(buildImage, BUILD_TIMEOUT_MILLIS);
  afterAll(async () => {
    if (containers.length > 0) await docker('rm', '--force', ...containers);
  });

  async function start(...options: string[]): Promise<string> {
    const name = uniqueKey();
    containers.push(name);
    const published = ['--publish', '127.0.0.1::8080'];
    await docker('run', '--detach', '--name', name, ...published, ...RESTRICTED, ...options, IMAGE);
    return name;
  }

  async function urlOf(container: string): Promise<string> {
    return `http://${(await docker('port', container, '8080/tcp')).trim()}`;
  }

  /** The output of a program in the image. */
  function evaluate(script: string): Promise<string> {
    return docker('run', '--rm', ...RESTRICTED, IMAGE, 'node', '-p', script);
  }

  test('serves without rights on a read-only file system, and is healthy', async () => {
    // Without gRPC's message files it would not start.
    const container = await start('--env', 'GRPC_PORT=8082');
    await untilHealthy(container);

    const url = await urlOf(container);
    expect((await send(url, 'POST', '/rate/key')).status).toBe(200);
    for (const path of ['/openapi.json', '/docs', '/docs/swagger-ui-bundle.js']) {
      expect([path, (await send(url, 'GET', path)).status]).toEqual([path, 200]);
    }
  });

  test('has the command line, which runs CMD once the service approves', async () => {
    const container = await start();
    await untilHealthy(container);
    const entry = ['--network', `container:${container}`, '--entrypoint', 'sluice-client'];
    const command = ['run', uniqueKey(), '--', 'node', '-p', '6 * 7'];

    expect(await docker('run', '--rm', ...RESTRICTED, ...entry, IMAGE, ...command)).toBe('42\n');
  });

  test('stops by itself on SIGTERM, with code 0', async () => {
    const container = await start();
    await untilHealthy(container);
    await docker('stop', '--time', '20', container);

    expect((await docker('inspect', '-f', '{{.State.ExitCode}}', container)).trim()).toBe('0');
    const log = (await docker('logs', container)).trim().split('\n');
    const messages = log.map((line) => (JSON.parse(line) as { msg: string }).msg);
    expect(messages).toEqual(['serving', 'no authentication configured', 'stopping', 'stopped']);
  });

  test('is unhealthy if it does not serve', async () => {
    // The process exists, but hangs.
    const container = await start('--health-interval=200ms', '--health-retries=1');
    await untilHealthy(container);
    await docker('kill', '--signal', 'STOP', container);
    const status = await until(async () => {
      const found = await docker('inspect', '-f', '{{.State.Health.Status}}', container);
      return found.trim() !== 'healthy' && found.trim();
    });
    expect(status).toBe('unhealthy');
    await docker('kill', '--signal', 'CONT', container);
  });

  test('does not run as root, runs node directly, and has its title and version as labels', async () => {
    const [{ Config: config }] = JSON.parse(await docker('image', 'inspect', IMAGE)) as [
      { Config: Record<string, unknown> },
    ];
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    expect(config).toMatchObject({
      User: '1000:1000',
      Cmd: ['node', 'dist/main.js'],
      Labels: {
        'org.opencontainers.image.title': 'sluice',
        'org.opencontainers.image.version': version,
      },
    });
    expect(config.Entrypoint ?? []).toEqual([]);
    expect((await evaluate('process.getuid()')).trim()).toBe('1000');
  });

  test('has the dependencies of the lock file, none for development, and no sources', async () => {
    const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as Lock;
    const wanted = Object.entries(packages)
      .filter(([path, { dev, optional }]) => path !== '' && dev !== true && optional !== true)
      .map(([path]) => path);
    const listing = `JSON.stringify(require('node:fs').readdirSync('.'))`;
    const inside = `JSON.stringify(Object.keys(JSON.parse(require('node:fs').readFileSync(
      'node_modules/.package-lock.json', 'utf8')).packages))`;
    expect((JSON.parse(await evaluate(inside)) as string[]).sort()).toEqual(wanted.sort());
    expect((JSON.parse(await evaluate(listing)) as string[]).sort()).toEqual([
      'dist',
      'lua',
      'node_modules',
      'package.json',
      'proto',
      'ui',
    ]);
  });
});
