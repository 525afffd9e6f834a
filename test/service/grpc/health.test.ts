import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

import { Client, credentials, type ServiceDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import descriptor from 'protobufjs/ext/descriptor/index.js';

import { acceptsConnections } from '../../support/accepts-connections.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { freePort } from '../../support/free-port.js';
import { type GrpcApp, startGrpcApp, useGrpcApps } from '../../support/grpc-app.js';
import { failureOf, useGateways } from '../../support/grpc-gateway.js';
import { useHealthClients } from '../../support/grpc-health.js';
import { type Answer, send } from '../../support/http-client.js';
import { loadedBy } from '../../support/loaded-modules.js';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.js';
import { killReplicas, startReplica } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

const start = useGrpcApps();
const healthOf = useHealthClients();
const gatewayOf = useGateways();
const folder = useTemporaryFolder();

const LIMITS = 'envoy.service.ratelimit.v3.RateLimitService';

describe('the health service', () => {
  test.each(['', LIMITS, 'ratelimit'])('says that %j serves', async (service) => {
    expect(await healthOf(await start()).check(service)).toBe('SERVING');
  });

  test('asks for no token', async () => {
    const caller = { name: 'one', token: 'token-of-one-caller', scopes: ['check'] };
    const app = await start({}, { tokens: [caller] });

    expect((await failureOf(gatewayOf(app).askFor('key')))[0]).toBe('UNAUTHENTICATED');
    expect(await healthOf(app).check(LIMITS)).toBe('SERVING');
  });

  test('tells watchers at once when the service drains, while calls are still decided', async () => {
    const app = await start({ SHUTDOWN_DELAY_MILLIS: '3600000' });
    const health = healthOf(app);
    const watched = ['', 'ratelimit'].map((service) => health.watch(service));
    await Promise.all(watched.map((each) => each.tells('SERVING')));
    const hurry = new AbortController();
    const stopped = app.stop(0, hurry.signal);
    await Promise.all(watched.map((each) => each.tells('NOT_SERVING')));

    for (const { told } of watched) expect(told).toEqual(['SERVING', 'NOT_SERVING']);
    expect(await health.check(LIMITS)).toBe('NOT_SERVING');
    expect((await gatewayOf(app).askFor(uniqueKey())).overall_code).toBe('OK');
    hurry.abort();
    await stopped;
  });

  test('goes on telling other watchers when one has left', async () => {
    const app = await start({ SHUTDOWN_DELAY_MILLIS: '3600000' });
    const health = healthOf(app);
    const [leaves, stays] = [health.watch(''), health.watch('')];
    await Promise.all([leaves.tells('SERVING'), stays.tells('SERVING')]);
    leaves.cancel();
    const hurry = new AbortController();
    const stopped = app.stop(0, hurry.signal);
    await stays.tells('NOT_SERVING');

    expect(leaves.told).toEqual(['SERVING']);
    hurry.abort();
    await stopped;
  });
});

describeWithRedisProgram('while Redis is down', () => {
  let redis: RedisProcess;
  afterEach(() => redis.stop());

  test('the health service says NOT_SERVING until Redis is back', async () => {
    redis = await startRedisProcess();
    const app = await start({ REDIS_URL: redis.url, STORE_TIMEOUT_MILLIS: '1000' });
    const watched = healthOf(app).watch(LIMITS);
    await watched.tells('SERVING');
    await redis.kill();
    await watched.tells('NOT_SERVING');
    await redis.restart({ withData: false });
    await watched.tells('SERVING');

    expect(watched.told).toEqual(['SERVING', 'NOT_SERVING', 'SERVING']);
    await app.stop(0);
  });
});

describe('reflection', () => {
  interface ReflectionAnswer {
    readonly listServicesResponse?: { readonly service: readonly { readonly name: string }[] };
    readonly fileDescriptorResponse?: { readonly fileDescriptorProto: readonly Buffer[] };
    readonly errorResponse?: { readonly errorCode: number };
  }

  const PACKAGE = dirname(createRequire(import.meta.url).resolve('@grpc/reflection/package.json'));
  const SERVICES = ['envoy.service.ratelimit.v3.RateLimitService', 'grpc.health.v1.Health'];

  let app: GrpcApp;
  beforeAll(async () => {
    app = await startGrpcApp();
  });
  afterAll(() => app.stop(0));

  /** Asks the reflection service, as grpcurl does. */
  async function reflect(version: string, question: object): Promise<ReflectionAnswer> {
    const file = join(PACKAGE, 'build/proto/grpc/reflection', version, 'reflection.proto');
    const service = loadSync(file)[`grpc.reflection.${version}.ServerReflection`];
    const { path, requestSerialize, responseDeserialize } = (service as ServiceDefinition)
      .ServerReflectionInfo!;
    const client = new Client(`127.0.0.1:${app.grpcPort}`, credentials.createInsecure());
    const stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize);
    stream.write(question);
    stream.end();
    const answers: unknown[] = [];
    for await (const answer of stream) answers.push(answer);
    client.close();
    expect(answers).toHaveLength(1);
    return answers[0] as ReflectionAnswer;
  }

  type File = ReturnType<typeof descriptor.FileDescriptorProto.decode> &
    descriptor.IFileDescriptorProto;

  async function filesOf(version: string, fileContainingSymbol: string): Promise<File[]> {
    const { fileDescriptorResponse } = await reflect(version, { fileContainingSymbol });
    return fileDescriptorResponse!.fileDescriptorProto.map((bytes) =>
      descriptor.FileDescriptorProto.decode(bytes),
    );
  }

  describe.each(['v1', 'v1alpha'])('reflection %s', (version) => {
    test('lists the services', async () => {
      const { listServicesResponse } = await reflect(version, { listServices: '*' });

      expect(listServicesResponse?.service.map(({ name }) => name)).toEqual(SERVICES);
    });

    test.each(SERVICES)('has all files of %s, with their dependencies', async (service) => {
      const files = await filesOf(version, service);
      const names = files.map(({ name }) => name);

      expect(new Set(names).size).toBe(names.length);
      for (const needed of files.flatMap(dependenciesOf)) expect(names).toContain(needed);
    });

    test('lists exactly the files of the used types as dependencies', async () => {
      const files = await filesOf(version, SERVICES[0]!);
      const home = new Map(
        files.flatMap((file) => definedIn(file).map((type) => [type, file.name])),
      );

      expect(files.flatMap(usedIn).length).toBeGreaterThan(10);
      for (const file of files) {
        // Types by their full names, which one of the files defines.
        const needed = new Set(usedIn(file).map((type) => home.get(type)));
        needed.delete(file.name);
        expect(dependenciesOf(file).sort()).toEqual([...needed].sort());
      }
    });

    test('has the method with its types', async () => {
      const [file] = await filesOf(version, `${SERVICES[0]}.ShouldRateLimit`);

      expect(file?.service?.[0]).toMatchObject({
        name: 'RateLimitService',
        method: [
          {
            name: 'ShouldRateLimit',
            inputType: '.envoy.service.ratelimit.v3.RateLimitRequest',
            outputType: '.envoy.service.ratelimit.v3.RateLimitResponse',
          },
        ],
      });
    });

    test.each(['envoy.Nothing', 'toString', '__proto__', ''])(
      'goes on after %j',
      async (symbol) => {
        await reflect(version, { fileContainingSymbol: symbol });

        expect(
          (await reflect(version, { fileContainingSymbol: 'envoy.Nothing' })).errorResponse,
        ).toEqual(expect.objectContaining({ errorCode: 5 }));
      },
    );
  });

  function dependenciesOf({ dependency }: File): string[] {
    return [...((dependency as string[] | null | undefined) ?? [])];
  }

  interface Scope {
    readonly name?: string | null;
    readonly nestedType?: Scope[] | null;
    readonly enumType?: { readonly name?: string | null }[] | null;
    readonly field?: { readonly typeName?: string | null }[] | null;
  }

  function definedIn(file: File): string[] {
    const walk = (scope: string, messages: readonly Scope[]): string[] =>
      messages.flatMap(({ name, nestedType, enumType }) => {
        const full = `${scope}.${name}`;
        return [
          full,
          ...(enumType ?? []).map((each) => `${full}.${each.name}`),
          ...walk(full, nestedType ?? []),
        ];
      });
    const scope = `.${file.package}`;
    return [
      ...walk(scope, file.messageType ?? []),
      ...(file.enumType ?? []).map(({ name }) => `${scope}.${name}`),
    ];
  }

  function usedIn(file: File): string[] {
    const walk = (messages: readonly Scope[]): string[] =>
      messages.flatMap(({ field, nestedType }) => [
        ...(field ?? []).flatMap(({ typeName }) => (typeName ? [typeName] : [])),
        ...walk(nestedType ?? []),
      ]);
    const methods = (file.service ?? []).flatMap(({ method }) => method ?? []);
    return [
      ...walk(file.messageType ?? []),
      ...methods.flatMap(({ inputType, outputType }) => [String(inputType), String(outputType)]),
    ];
  }
});

describe('modules for gRPC', () => {
  afterEach(killReplicas);

  /** The modules for gRPC of a replica that has served and stopped. */
  async function loadedForGrpc(settings: Readonly<Record<string, string>>): Promise<string[]> {
    const { all } = await loadedBy(settings, folder);
    expect(all.some((path) => path.includes('ioredis'))).toBe(true);
    return all.filter((path) => /@grpc|grpc-health-check|protobufjs|dist.grpc/.test(path));
  }

  test('no module for gRPC is loaded without GRPC_PORT', async () => {
    expect(await loadedForGrpc({})).toEqual([]);
  });

  test('the modules for gRPC are loaded with GRPC_PORT', async () => {
    expect(await loadedForGrpc({ GRPC_PORT: '0' })).not.toEqual([]);
  });

  test('GET /readyz is 503 until the gRPC port listens', async () => {
    const [port, grpcPort] = [await freePort(), await freePort()];
    const mayListen = join(folder, 'may-listen');
    const started = startReplica({
      PORT: String(port),
      GRPC_PORT: String(grpcPort),
      LATE_PORT: String(grpcPort),
      LISTENS_WITH: mayListen,
      NODE_OPTIONS: `--import ${new URL('../../support/late-port.mjs', import.meta.url).href}`,
    });
    const reasons = new Set<string>();
    const isReady = async (): Promise<boolean> => {
      let answer: Answer;
      try {
        answer = await send(`http://127.0.0.1:${port}`, 'GET', '/readyz');
      } catch {
        return false; // The port does not listen yet.
      }
      if (answer.status !== 200) {
        reasons.add(answer.text);
        await writeFile(mayListen, '');
      }
      return answer.status === 200;
    };
    await until(isReady);

    expect(await acceptsConnections(grpcPort)).toBe(true);
    expect([...reasons]).toEqual(['starting']);
    await started;
  });
});
