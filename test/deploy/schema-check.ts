import { createRequire } from 'node:module';

import ts from 'typescript';

import type { KubernetesObject } from './kubernetes-object.js';

const require = createRequire(import.meta.url);

interface Model {
  validate(): void;
}

/**
 * Errors in objects by the schemas of the Kubernetes API and of the Prometheus operator, from `kubernetes-models`.
 * Its validators check required fields and values, but accept unknown fields, like the schemas. Its types reject
 * unknown fields if the objects are literals.
 */
export function schemaErrors(objects: readonly KubernetesObject[]): string[] {
  return [...objects.flatMap(invalidValues), ...unknownFields(objects)];
}

function modelPath({ apiVersion, kind }: KubernetesObject): string {
  const library = apiVersion.startsWith('monitoring.coreos.com/')
    ? '@kubernetes-models/prometheus-operator'
    : 'kubernetes-models';
  return `${library}/${apiVersion}/${kind}`;
}

function invalidValues(object: KubernetesObject): string[] {
  const models = require(modelPath(object)) as Record<string, new (data: unknown) => Model>;
  const Model = models[object.kind]!;
  try {
    new Model(object).validate();
    return [];
  } catch (error) {
    return [`${describeObject(object)}: ${(error as Error).message}`];
  }
}

const SOURCE = '/manifests.ts';

function unknownFields(objects: readonly KubernetesObject[]): string[] {
  const lines = objects.map((object, i) => {
    const type = `import('${require.resolve(modelPath(object)).replace(/\.js$/, '')}').I${object.kind}`;
    return `export const object${i}: ${type} = ${JSON.stringify(object)};`;
  });
  const options: ts.CompilerOptions = { noEmit: true, strict: true, skipLibCheck: true, types: [] };
  const host = ts.createCompilerHost(options);
  const readFile = host.getSourceFile.bind(host);
  host.getSourceFile = (name, ...rest) =>
    name === SOURCE
      ? ts.createSourceFile(name, lines.join('\n'), ts.ScriptTarget.ESNext)
      : readFile(name, ...rest);
  const program = ts.createProgram([SOURCE], options, host);
  return ts.getPreEmitDiagnostics(program).map((diagnostic) => {
    const line = diagnostic.file?.getLineAndCharacterOfPosition(diagnostic.start ?? 0).line ?? 0;
    const message = ts.flattenDiagnosticMessageText(diagnostic.messageText, ' ');
    return `${describeObject(objects[line]!)}: ${message}`;
  });
}

function describeObject({ kind, metadata }: KubernetesObject): string {
  return `${kind} ${metadata.name}`;
}
