import { Document, isScalar, LineCounter, parseAllDocuments } from 'yaml';
import { z } from 'zod';

import { UNIT_MILLIS } from '../../grpc/messages.js';
import { type Path, PositionedYaml, YAML_OPTIONS } from '../../rules/positioned-yaml.js';
import { RulesError } from '../../rules/rules-error.js';
import { strictObject } from '../../rules/strict-object.js';
import { GO_YAML, goValueOf, Unquoted } from './go-yaml.js';

const unquoted = (otherwise: string) =>
  z.instanceof(Unquoted, { error: otherwise }).transform(({ value }) => value);

/** `validateYamlKeys` of Envoy's service rejects other numbers than integers, also where a text is expected. */
const text = z
  .union([z.string(), z.instanceof(Unquoted)], 'must be a text')
  .transform((given, { issues }) => {
    if (typeof given === 'string') return given;
    if (!Number.isNaN(given.value)) return given.text;
    issues.push({
      code: 'custom',
      message: `must be in quotes: Envoy ratelimit rejects the number ${given.text}`,
      input: given,
    });
    return z.NEVER;
  });
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

/** A descriptor as the file has it. */
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

/** A descriptor, and where it is. */
export interface LocatedDescriptor extends ConfiguredDescriptor {
  /** '' without one. */
  readonly value: string;
  readonly at: Location;
  readonly children: readonly LocatedDescriptor[];
}

/** Where a descriptor is in its file. */
export interface Location {
  readonly file: string;
  readonly line: number;
  /** An error there. @param problem follows what is wrong */
  error(problem: string): RulesError;
}

/** What a rule can't do that its descriptor does. */
export interface Warning {
  readonly file: string;
  /** From 1 on. */
  readonly line: number;
  readonly problem: string;
}

/** The limits of a domain in a document of a file. */
export interface DomainLimits {
  readonly domain: string;
  readonly descriptors: readonly LocatedDescriptor[];
}

/** A file of limits for Envoy's rate limit service, as far as it is valid. */
export interface LimitsFile {
  readonly domains: readonly DomainLimits[];
  readonly warnings: readonly Warning[];
  readonly errors: readonly RulesError[];
}

/**
 * Reads a configuration of github.com/envoyproxy/ratelimit.
 * @param file names the text in errors
 */
export function parseLimitsFile(yaml: string, file: string): LimitsFile {
  const lineCounter = new LineCounter();
  const options = { ...YAML_OPTIONS, ...GO_YAML, lineCounter };
  const all: readonly Document[] = parseAllDocuments(yaml, options);
  const filled = all.filter(({ contents, errors }) => !isEmpty(contents) || errors.length > 0);
  const documents = (filled.length > 0 ? filled : [new Document(null)]).map((document) => ({
    document,
    at: new PositionedYaml(document, lineCounter, file),
  }));
  const [, second] = documents;
  const read = documents.map(({ document, at }) => domainIn(document, at, file));
  return {
    domains: read.flatMap((one) => ('domain' in one ? one : [])),
    warnings: second
      ? [
          {
            file,
            line: second.at.lineOf([]),
            problem: 'Envoy ratelimit reads no more documents of a file than the first',
          },
        ]
      : [],
    errors: read
      .flatMap((one) => ('errors' in one ? one.errors : []))
      .sort((a, b) => a.line - b.line || a.column - b.column),
  };
}

function isEmpty(contents: unknown): boolean {
  return contents === null || (isScalar(contents) && contents.source === '');
}

function domainIn(
  document: Document,
  at: PositionedYaml,
  file: string,
): DomainLimits | { readonly errors: readonly RulesError[] } {
  if (at.mistakes.length > 0) return { errors: at.mistakes };
  let value: unknown;
  try {
    value = goValueOf(document, (node, problem) => {
      throw at.errorAt(node.range?.[0] ?? 0, problem);
    });
  } catch (error) {
    if (error instanceof RulesError) return { errors: [error] };
    throw error;
  }
  const checked = at.check(value, root);
  if ('errors' in checked) return checked;
  const { domain, descriptors: listed } = checked.value;
  return { domain, descriptors: located(listed ?? [], ['descriptors'], file, at) };
}

function located(
  list: readonly ConfiguredDescriptor[],
  path: Path,
  file: string,
  yaml: PositionedYaml,
): LocatedDescriptor[] {
  return list.map((one, i) => {
    const here = [...path, i];
    return {
      ...one,
      value: one.value ?? '',
      at: {
        file,
        line: yaml.lineOf(here),
        error: (problem) => yaml.errorIn(here, problem),
      },
      children: located(one.descriptors ?? [], [...here, 'descriptors'], file, yaml),
    };
  });
}
