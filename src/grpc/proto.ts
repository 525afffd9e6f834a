import { fileURLToPath } from 'node:url';

import { loadSync, type PackageDefinition } from '@grpc/proto-loader';
import { protoPath as healthProto } from 'grpc-health-check';
import descriptor from 'protobufjs/ext/descriptor/index.js';

/** Next to `src` and to `dist`. */
const PROTO_FOLDER = fileURLToPath(new URL('../../proto/', import.meta.url));

export const RATE_LIMIT_SERVICE = 'envoy.service.ratelimit.v3.RateLimitService';
/** The path of its only method, the calls. Only they need a token. */
export const CALL_PATH = `/${RATE_LIMIT_SERVICE}/ShouldRateLimit`;

/** Everything that `proto/` describes; messages in JavaScript are as in `messages.ts`. */
export function loadProto(): PackageDefinition {
  return loadSync('envoy/service/ratelimit/v3/rls.proto', {
    includeDirs: [PROTO_FOLDER],
    keepCase: true,
    longs: Number,
    enums: String,
    defaults: true,
  });
}

type File = ReturnType<typeof descriptor.FileDescriptorProto.decode> &
  descriptor.IFileDescriptorProto;
/** Full names, and the file of each. */
type Symbols = ReadonlyMap<string, string>;

/**
 * The definitions for the reflection service: with full names of types, each file's dependencies, Google's own types in
 * the files in which clients know them, and the entries of maps by the names that Go clients require. protobufjs writes
 * names relative to their packages, leaves dependencies out and makes one file of each package, so that some clients,
 * such as Python's, can't resolve the files.
 */
export function reflected(): PackageDefinition {
  const proto = { ...loadProto(), ...loadSync(healthProto) };
  const files = new Map<string, File>();
  for (const { fileDescriptorProtos } of Object.values(proto)) {
    if (!Array.isArray(fileDescriptorProtos)) continue;
    for (const bytes of fileDescriptorProtos) {
      const decoded: File = descriptor.FileDescriptorProto.decode(bytes);
      nameMapEntries(decoded);
      for (const file of asKnown(decoded)) files.set(String(file.name), file);
    }
  }
  const symbols = symbolsOf([...files.values()]);
  for (const file of files.values()) complete(file, symbols);
  const encoded = [...files.values()].map((file) =>
    Buffer.from(descriptor.FileDescriptorProto.encode(file).finish()),
  );
  return Object.fromEntries(
    Object.entries(proto).map(([name, definition]) => [
      name,
      'fileDescriptorProtos' in definition
        ? { ...definition, fileDescriptorProtos: encoded }
        : definition,
    ]),
  ) as PackageDefinition;
}

/** Google's own types in use are a duration and the wrappers. */
function asKnown(file: File): File[] {
  if (file.package !== 'google.protobuf') return [file];
  const part = (name: string, has: (message: string) => boolean): File =>
    descriptor.FileDescriptorProto.create({
      name: `google/protobuf/${name}.proto`,
      package: file.package,
      syntax: file.syntax,
      messageType: (file.messageType ?? []).filter((message) => has(String(message.name))),
    });
  return [
    part('duration', (message) => message === 'Duration'),
    part('wrappers', (message) => message.endsWith('Value')),
  ];
}

function nameMapEntries({ messageType }: File): void {
  for (const { field, nestedType } of messageType ?? []) {
    for (const entry of nestedType ?? []) {
      const map = field?.find(({ typeName }) => typeName === entry.name);
      if (!entry.options?.mapEntry || !map) continue;
      entry.name = `${entry.name ?? ''}Entry`;
      map.typeName = entry.name;
    }
  }
}

function symbolsOf(files: readonly File[]): Symbols {
  const symbols = new Map<string, string>();
  for (const file of files) {
    const add = (scope: string, names: readonly { name?: string | null }[] = []): void => {
      for (const { name } of names) symbols.set(`${scope}.${name ?? ''}`, String(file.name));
    };
    const addMessages = (scope: string, messages: descriptor.IDescriptorProto[] = []): void => {
      add(scope, messages);
      for (const { name, nestedType, enumType } of messages) {
        const inner = `${scope}.${name ?? ''}`;
        addMessages(inner, nestedType ?? undefined);
        add(inner, enumType ?? undefined);
      }
    };
    const scope = `.${file.package ?? ''}`;
    addMessages(scope, file.messageType ?? undefined);
    add(scope, file.enumType ?? undefined);
  }
  return symbols;
}

function complete(file: File, symbols: Symbols): void {
  const needed = new Set<string>();
  const full = (name: string | null | undefined, scope: string): string => {
    const found = fullName(String(name), scope, symbols);
    const of = symbols.get(found);
    if (of !== undefined && of !== file.name) needed.add(of);
    return found;
  };
  const completeMessages = (
    scope: string,
    messages: descriptor.IDescriptorProto[] | null | undefined,
  ): void => {
    for (const { name, field, nestedType } of messages ?? []) {
      const inner = `${scope}.${name ?? ''}`;
      for (const one of field ?? []) if (one.typeName) one.typeName = full(one.typeName, inner);
      completeMessages(inner, nestedType);
    }
  };
  const scope = `.${file.package ?? ''}`;
  completeMessages(scope, file.messageType);
  for (const { method } of file.service ?? []) {
    for (const one of method ?? []) {
      one.inputType = full(one.inputType, scope);
      one.outputType = full(one.outputType, scope);
    }
  }
  file.dependency = [...needed];
}

/** The innermost scope that has the name wins, by the rules of proto files. */
function fullName(name: string, scope: string, symbols: Symbols): string {
  if (name.startsWith('.')) return name;
  for (let at = scope; at !== ''; at = at.slice(0, at.lastIndexOf('.'))) {
    if (symbols.has(`${at}.${name}`)) return `${at}.${name}`;
  }
  return `.${name}`;
}
