import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { z } from 'zod';
import { isMap, isScalar, parse, parseDocument, type YAMLMap } from 'yaml';

import { settingsSchema } from '../../src/config/settings.js';
import { CHART, describeWithDeployTools, templateChart } from './rendered-objects.js';

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly enum?: readonly string[];
}

const read = (file: string) => readFileSync(join(CHART, file), 'utf8');
const SCHEMA = JSON.parse(read('values.schema.json')) as Schema;

/** Helm passes this value to each chart that another one includes. */
const GIVEN_BY_HELM = 'global';

/** The settings that take one of some words. */
const CHOICES = Object.entries(
  z.toJSONSchema(settingsSchema, { io: 'input', unrepresentable: 'any' }).properties!,
).flatMap(([name, schema]) => {
  const { enum: values } = schema as Schema;
  return values === undefined || values.includes('true') ? [] : [[name, values] as const];
});

/** The paths of the maps with fixed names. Other maps may hold any names. */
function groupsIn(schema: Schema, path: readonly string[] = []): (readonly string[])[] {
  if (schema.additionalProperties !== false) return [];
  const inner = Object.entries(schema.properties ?? {});
  return [path, ...inner.flatMap(([name, property]) => groupsIn(property, [...path, name]))];
}

function schemaOf(path: readonly string[]): Schema | undefined {
  return path.reduce<Schema | undefined>((schema, name) => schema?.properties?.[name], SCHEMA);
}

const GROUPS = groupsIn(SCHEMA);
const isGroup = (path: readonly string[]) => GROUPS.some((group) => group.join() === path.join());

/** The path of every value of values.yaml that is not a group: its name, after the names of its groups. */
function valuesIn(map: YAMLMap, path: readonly string[] = []): (readonly string[])[] {
  return map.items.flatMap(({ key, value }) => {
    if (!isScalar<string>(key)) throw new Error('a key of values.yaml is not a text');
    const here = [...path, key.value];
    // Users may set other resources than the defaults, so their map is one value.
    if (isMap(value) && isGroup(here) && schemaOf(here)?.required) return valuesIn(value, here);
    return [here];
  });
}

const VALUES = valuesIn(parseDocument(read('values.yaml')).contents as YAMLMap);

test('values.yaml has every value of the schema, and no other', () => {
  const inSchema = GROUPS.filter((path) => path.length === 0 || schemaOf(path)?.required).flatMap(
    (path) => Object.keys(schemaOf(path)?.properties ?? {}).map((name) => [...path, name]),
  );
  const leaves = inSchema.filter((path) => !schemaOf(path)?.required);
  const names = VALUES.map((path) => path.join('.'));
  expect(names.length).toBeGreaterThan(30);

  expect([...names, GIVEN_BY_HELM].sort()).toEqual(leaves.map((path) => path.join('.')).sort());
});

test('the chart has the version and the licence of the program', () => {
  const { version, license } = JSON.parse(
    readFileSync(join(CHART, '../../../package.json'), 'utf8'),
  ) as { version: string; license: string };

  expect(parse(read('Chart.yaml'))).toMatchObject({
    appVersion: version,
    annotations: { 'artifacthub.io/license': license },
  });
});

describeWithDeployTools(['helm'], "the schema of the chart's values", () => {
  /** Values with `value` at this path. */
  const at = (path: readonly string[], value: unknown): object =>
    path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value) as object;

  test.each(GROUPS.map((path) => [path.join('.'), path]))(
    'rejects a misspelt value in "%s"',
    async (_, path) => {
      const { code, stderr } = await templateChart(at([...path, 'mispelt'], 1));

      expect(code).toBe(1);
      expect(stderr).toContain(path.map((name) => `/${name}`).join(''));
      expect(stderr).toContain("additional properties 'mispelt' not allowed");
    },
  );

  test.each(VALUES.map((path) => [path.join('.'), path]))(
    'rejects a wrong type of "%s"',
    async (_, path) => {
      // No value may be both a list and a map.
      for (const wrong of [[{ a: [] }], { 'not a name': 1 }]) {
        const { code, stderr } = await templateChart(at(path, wrong));
        if (code === 0) continue;
        expect(stderr).toContain(`at '/${path.join('/')}`);
        return;
      }
      throw new Error(`${path.join('.')} may be a list and a map`);
    },
  );

  test.each(CHOICES)(
    'takes the values of the setting %s, and rejects others',
    async (name, values) => {
      const { properties } = SCHEMA.properties!.settings!;
      expect(properties![name]!.enum).toEqual(['', ...values]);
      const { code, stderr } = await templateChart({ settings: { [name]: 'nonsense' } });

      expect(code).toBe(1);
      expect(stderr).toContain(`at '/settings/${name}': value must be one of`);
    },
  );

  test.each([
    [
      { settings: { WINDOW_MILLIS: 2000 } },
      "at '/settings/WINDOW_MILLIS': got number, want string",
    ],
    [{ settings: { window_millis: '2000' } }, "invalid propertyName 'window_millis'"],
    [{ settings: { ADMIN_PORT: '0' } }, "at '/settings/ADMIN_PORT': '0' does not match pattern"],
    [{ settings: null }, "missing property 'settings'"],
    [{ autoscaling: { minReplicas: 0 } }, "at '/autoscaling/minReplicas': minimum"],
    [{ settings: { MAX_KEYS: 'many' } }, "at '/settings/MAX_KEYS': 'many' does not match pattern"],
    [{ settings: { SHUTDOWN_DELAY_MILLIS: '3s' } }, "at '/settings/SHUTDOWN_DELAY_MILLIS'"],
    [
      { rules: { key: 'folder/rules.yaml' } },
      "at '/rules/key': 'folder/rules.yaml' does not match",
    ],
    [{ tls: { secretName: 'My_Secret' } }, "at '/tls/secretName': 'My_Secret' does not match"],
    [{ networkPolicy: { adminFrom: [{}] } }, "at '/networkPolicy/adminFrom/0': minProperties"],
    [{ service: { port: 70000 } }, "at '/service/port': maximum"],
    [
      { mountedSecrets: [{ name: 'tls', secretName: 'a', mountPath: '/a' }] },
      "at '/mountedSecrets/0/name': 'not' failed",
    ],
    [
      { mountedConfigMaps: [{ name: 'a', secretName: 'a', mountPath: '/a' }] },
      "missing property 'configMapName'",
    ],
    [{ extraVolumes: [{ name: 'tls', emptyDir: {} }] }, "at '/extraVolumes/0/name': 'not' failed"],
    [{ image: { digest: 'sha256:abc' } }, "at '/image/digest': 'sha256:abc' does not match"],
    [{ extraContainers: [{ name: 'a' }] }, "at '/extraContainers/0': missing property 'image'"],
    [{ monitoring: { runbookUrl: 'git.example' } }, "at '/monitoring/runbookUrl'"],
    [{ extraEnv: [{ value: 'a' }] }, "at '/extraEnv/0': missing property 'name'"],
    [{ podDisruptionBudget: { maxUnavailable: 'one' } }, "'one' does not match pattern"],
    [{ resources: { limits: { memory: '1 GB' } } }, "at '/resources/limits/memory'"],
  ])('rejects %j', async (values, message) => {
    const { code, stderr } = await templateChart(values);

    expect(code).toBe(1);
    expect(stderr).toContain(message);
  });
});
