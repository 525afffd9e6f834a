import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

import { Client, credentials, type ServiceDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import descriptor from 'protobufjs/ext/descriptor/index.js';

import { type GrpcApp, startGrpcApp } from '../../support/grpc-app.js';

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

  test('names every type by its full name, which one of the files defines', async () => {
    const files = await filesOf(version, SERVICES[0]!);
    const defined = new Set(files.flatMap(definedIn));

    const used = files.flatMap((file) => usedIn(file).map((type) => [file.name, type]));
    expect(used.length).toBeGreaterThan(10);
    for (const [, type] of used) expect(defined).toContain(type);
  });

  test('lists exactly the files of the used types as dependencies', async () => {
    const files = await filesOf(version, SERVICES[0]!);
    const home = new Map(files.flatMap((file) => definedIn(file).map((type) => [type, file.name])));

    for (const file of files) {
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

  test.each(['envoy.Nothing', 'toString', '__proto__', ''])('goes on after %j', async (symbol) => {
    await reflect(version, { fileContainingSymbol: symbol });

    expect(
      (await reflect(version, { fileContainingSymbol: 'envoy.Nothing' })).errorResponse,
    ).toEqual(expect.objectContaining({ errorCode: 5 }));
  });
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
