import {
  Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseAllDocuments,
  Scalar,
} from 'yaml';
import { z } from 'zod';

import { UNIT_MILLIS } from '../../grpc/messages.js';
import { strictObject } from '../../rules/field-schemas.js';
import {
  type Path,
  PositionedYaml,
  type RulesError,
  RulesErrors,
  YAML_OPTIONS,
} from '../../rules/positioned-yaml.js';

/** The options of a document for {@link goValueOf}: all its scalars and names are texts. */
const GO_YAML = { schema: 'failsafe', stringKeys: true } as const;

/** A few lines of nested aliases would expand to more than fits into memory. */
const MAX_VALUES = 500_000;
const MAX_DEPTH = 100;
const MERGE = '<<';

/** What yaml.v2 takes for something else than a text, by `resolve.go`. It removes `_` from numbers. */
const NULL = /^(?:~|null|Null|NULL)?$/;
const TRUE = /^(?:y|Y|yes|Yes|YES|true|True|TRUE|on|On|ON)$/;
const FALSE = /^(?:n|N|no|No|NO|false|False|FALSE|off|Off|OFF)$/;
const NUMBER = /^[-+.\d]/;
const INTEGER = /^([-+]?)(?:(0[xX][\da-fA-F]+|0[bB][01]+|0|[1-9]\d*)|0[oO]?([0-7]+))$/;
const FLOAT =
  /^(?:[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?|\.(?:nan|NaN|NAN)|[-+]?\.(?:inf|Inf|INF))$/;
const INTEGER_BITS = 64;

/** A number or a boolean. Where a text is expected, it is one. */
class Unquoted {
  constructor(
    /** As the file has it. */
    readonly text: string,
    /** NaN for any number but an integer of 64 bits. */
    readonly value: number | boolean,
  ) {}
}

type Fields = Record<string, unknown>;

/**
 * The value of a document as `gopkg.in/yaml.v2` reads it for Envoy's rate limit service: what comes later in an object wins,
 * whether it is merged or not, and `rate_limit` keeps the fields that only an earlier one has, since it is a struct.
 * @throws RulesErrors for what that can't read
 */
function goValueOf(yaml: PositionedYaml): unknown {
  const { document } = yaml;
  const fail = (node: Node, problem: string): never => {
    throw new RulesErrors([yaml.errorAt(node.range?.[0] ?? 0, problem)]);
  };
  let values = 0;
  /** @param into the object that takes the fields of another */
  const valueOf = (given: unknown, depth: number, into?: Fields): unknown => {
    values += 1;
    if (depth > MAX_DEPTH || values > MAX_VALUES) fail(given as Node, 'is too deep or too large');
    const node = isAlias(given)
      ? (given.resolve(document) ?? fail(given, 'must have an anchor before it'))
      : given;
    if (isScalar(node)) return scalarOf(node);
    if (isSeq(node)) return node.items.map((item) => valueOf(item, depth + 1));
    if (!isMap(node)) return null;
    // Without a prototype that a field could name.
    const fields = into ?? (Object.create(null) as Fields);
    for (const { key, value } of node.items) {
      const name = String((key as Scalar).value);
      if (name === MERGE) {
        for (const merged of isSeq(value) ? value.items.toReversed() : [value]) {
          if (valueOf(merged, depth + 1, fields) === fields) continue;
          fail(merged as Node, 'must be an object, since it is merged');
        }
        continue;
      }
      const earlier = name === 'rate_limit' ? fields[name] : undefined;
      fields[name] = valueOf(value, depth + 1, isFields(earlier) ? earlier : undefined);
    }
    return fields;
  };
  return valueOf(document.contents, 0);
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === null;
}

function scalarOf({ value, type, tag }: Scalar): string | Unquoted | null {
  const text = String(value);
  if (type !== Scalar.PLAIN || tag !== undefined) return text;
  if (NULL.test(text)) return null;
  if (TRUE.test(text)) return new Unquoted(text, true);
  if (FALSE.test(text)) return new Unquoted(text, false);
  const number = NUMBER.test(text) ? numberIn(text.replaceAll('_', '')) : undefined;
  return number === undefined ? text : new Unquoted(text, number);
}

function numberIn(text: string): number | undefined {
  const [, sign, digits, octal] = INTEGER.exec(text) ?? [];
  if (sign === undefined) return FLOAT.test(text) ? NaN : undefined;
  const size = BigInt(digits ?? `0o${octal}`);
  const integer = sign === '-' ? -size : size;
  return BigInt.asIntN(INTEGER_BITS, integer) === integer ? Number(integer) : NaN;
}

const unquoted = (otherwise: string) =>
  z.instanceof(Unquoted, { error: otherwise }).transform(({ value }) => value);

/** `validateYamlKeys` of Envoy's service rejects other numbers than integers, also where a text is expected. */
const text = z
  .union([z.string(), z.instanceof(Unquoted)], 'must be a text')
  .refine((given) => typeof given === 'string' || !Number.isNaN(given.value), {
    error: ({ input }) =>
      `must be in quotes: Envoy ratelimit rejects the number ${(input as Unquoted).text}`,
  })
  .transform((given) => (typeof given === 'string' ? given : given.text));
const yesOrNo = unquoted('must be true or false')
  .pipe(z.boolean('must be true or false'))
  .nullish();

const isUnit = (name: string): name is keyof typeof UNIT_MILLIS => Object.hasOwn(UNIT_MILLIS, name);
/** What stands for no unit, as Envoy Gateway writes it. */
const NO_UNIT = ['', 'UNKNOWN'];
const unit = text
  .transform((name) => name.toUpperCase())
  .refine(
    (name) => isUnit(name) || NO_UNIT.includes(name),
    `must be ${Object.keys(UNIT_MILLIS).join(', ').toLowerCase()}`,
  )
  .transform((name) => (isUnit(name) ? name : undefined));

const rateLimit = strictObject(
  {
    requests_per_unit: unquoted('must be a whole number')
      .pipe(
        z
          .int('must be a whole number')
          .min(0, 'must be at least 0')
          .max(2 ** 32 - 1, `must be at most ${2 ** 32 - 1}`),
      )
      .nullish(),
    unit: unit.nullish(),
    unlimited: yesOrNo,
    name: text.transform((name) => (name === '' ? undefined : name)).nullish(),
    replaces: z.array(strictObject({ name: text }, 'must be an object with name')).nullish(),
  },
  'must be an object with unit and requests_per_unit, or with unlimited',
).refine(
  ({ unit: given, unlimited }) => (unlimited === true) !== (given !== undefined && given !== null),
  'must have either unit or unlimited',
);

/** The fields of a descriptor, besides those below it. */
const FIELDS = {
  key: text.refine((key) => key !== '', 'must not be empty'),
  value: text.nullish(),
  rate_limit: rateLimit.nullish(),
  shadow_mode: yesOrNo,
  quota_mode: yesOrNo,
  detailed_metric: yesOrNo,
  value_to_metric: yesOrNo,
  share_threshold: yesOrNo,
  metadata: z.unknown().optional(),
};

export interface ConfiguredDescriptor extends Readonly<z.infer<z.ZodObject<typeof FIELDS>>> {
  readonly descriptors?: readonly ConfiguredDescriptor[] | null | undefined;
}

const descriptors = z.lazy(() => z.array(descriptor, 'must be a list').nullish());
const descriptor: z.ZodType<ConfiguredDescriptor> = strictObject(
  { ...FIELDS, descriptors },
  'must be an object with key',
);

const root = strictObject(
  {
    domain: text.refine((domain) => domain !== '', 'must not be empty'),
    descriptors,
    /** Of Envoy Gateway, which sends it with each domain. */
    name: text.nullish(),
  },
  'must be an object with domain and descriptors',
);

export interface LocatedDescriptor extends ConfiguredDescriptor {
  /** '' without one. */
  readonly value: string;
  /** Where it is, and in which document. */
  readonly path: Path;
  readonly yaml: PositionedYaml;
  readonly children: readonly LocatedDescriptor[];
}

export interface DomainLimits {
  readonly domain: string;
  readonly descriptors: readonly LocatedDescriptor[];
}

/** A file of limits for Envoy's rate limit service, as far as it is valid. */
export interface LimitsFile {
  readonly domains: readonly DomainLimits[];
  readonly warnings: readonly string[];
  readonly errors: readonly RulesError[];
}

/** Reads a configuration of github.com/envoyproxy/ratelimit. @param file names the text in errors */
export function parseLimitsFile(content: string, file: string): LimitsFile {
  const lineCounter = new LineCounter();
  const options = { ...YAML_OPTIONS, ...GO_YAML, lineCounter };
  const all: readonly Document[] = parseAllDocuments(content, options);
  const filled = all.filter(({ contents, errors }) => !isEmpty(contents) || errors.length > 0);
  const documents = (filled.length > 0 ? filled : [new Document(null)]).map(
    (document) => new PositionedYaml(document, lineCounter, file),
  );
  const domains: DomainLimits[] = [];
  const errors: RulesError[] = [];
  for (const yaml of documents) {
    try {
      const { domain, descriptors: listed } = yaml.read(root, () => goValueOf(yaml));
      domains.push({ domain, descriptors: located(listed ?? [], ['descriptors'], yaml) });
    } catch (error) {
      if (!(error instanceof RulesErrors)) throw error;
      errors.push(...error.errors);
    }
  }
  const problem = 'Envoy ratelimit reads no more documents of a file than the first';
  return {
    domains,
    warnings: documents.slice(1, 2).map((second) => second.warningAt([], problem)),
    errors: errors.sort((a, b) => a.line - b.line || a.column - b.column),
  };
}

function isEmpty(contents: unknown): boolean {
  return contents === null || (isScalar(contents) && contents.source === '');
}

function located(
  list: readonly ConfiguredDescriptor[],
  above: Path,
  yaml: PositionedYaml,
): LocatedDescriptor[] {
  return list.map((one, i) => {
    const path = [...above, i];
    const children = located(one.descriptors ?? [], [...path, 'descriptors'], yaml);
    return { ...one, value: one.value ?? '', path, yaml, children };
  });
}
