import { z } from 'zod';

import { UNIT_MILLIS } from '../../grpc/messages.js';
import { type Path, type ReadFile, readYaml } from '../../rules/positioned-yaml.js';
import { strictObject } from '../../rules/strict-object.js';

/** Its texts may be written as numbers or as `true`. */
const text = z
  .union([z.string(), z.number(), z.boolean()], 'must be a text')
  .transform((value) => String(value));
const yesOrNo = z.boolean('must be true or false').nullish();
const unit = text
  .transform((value) => value.toUpperCase())
  .refine(
    (value): value is keyof typeof UNIT_MILLIS => Object.hasOwn(UNIT_MILLIS, value),
    `must be ${Object.keys(UNIT_MILLIS).join(', ').toLowerCase()}`,
  );

const rateLimit = strictObject(
  {
    requests_per_unit: z
      .int('must be a whole number')
      .min(0, 'must be at least 0')
      .max(2 ** 32 - 1, `must be at most ${2 ** 32 - 1}`)
      .nullish(),
    unit: unit.nullish(),
    unlimited: yesOrNo,
    name: text.nullish(),
    replaces: z.array(strictObject({ name: text }, 'must be an object with name')).nullish(),
  },
  'must be an object with unit and requests_per_unit, or with unlimited',
).refine(
  ({ unit: given, unlimited }) => (unlimited === true) !== (given !== undefined && given !== null),
  'must have either unit or unlimited',
);

/** A descriptor as the file has it. */
export interface ConfiguredDescriptor {
  readonly key: string;
  readonly value?: string | null | undefined;
  readonly rate_limit?: z.infer<typeof rateLimit> | null | undefined;
  readonly descriptors?: readonly ConfiguredDescriptor[] | null | undefined;
  readonly shadow_mode?: boolean | null | undefined;
  readonly quota_mode?: boolean | null | undefined;
  readonly detailed_metric?: boolean | null | undefined;
  readonly value_to_metric?: boolean | null | undefined;
  readonly share_threshold?: boolean | null | undefined;
  readonly metadata?: unknown;
}

const descriptors = z.lazy(() => z.array(descriptor, 'must be a list').nullish());
const descriptor: z.ZodType<ConfiguredDescriptor> = strictObject(
  {
    key: text.refine((key) => key !== '', 'must not be empty'),
    value: text.nullish(),
    rate_limit: rateLimit.nullish(),
    descriptors,
    shadow_mode: yesOrNo,
    quota_mode: yesOrNo,
    detailed_metric: yesOrNo,
    value_to_metric: yesOrNo,
    share_threshold: yesOrNo,
    metadata: z.unknown().optional(),
  },
  'must be an object with key',
);

const root = strictObject(
  { domain: text.refine((domain) => domain !== '', 'must not be empty'), descriptors },
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
  error(problem: string): Error;
}

/** A file of limits for Envoy's rate limit service. */
export interface LimitsFile {
  readonly domain: string;
  readonly descriptors: readonly LocatedDescriptor[];
}

/**
 * Reads a configuration of github.com/envoyproxy/ratelimit.
 * @param file names the text in errors
 * @throws RulesError for the first error
 */
export function parseLimitsFile(yaml: string, file: string): LimitsFile {
  const read = readYaml(yaml, file, root);
  const { domain, descriptors: listed } = read.value;
  return { domain, descriptors: located(listed ?? [], ['descriptors'], file, read) };
}

function located(
  list: readonly ConfiguredDescriptor[],
  path: Path,
  file: string,
  read: ReadFile<unknown>,
): LocatedDescriptor[] {
  return list.map((one, i) => {
    const here = [...path, i];
    return {
      ...one,
      value: one.value ?? '',
      at: {
        file,
        line: read.lineOf(here),
        error: (problem) => read.errorIn(here, problem),
      },
      children: located(one.descriptors ?? [], [...here, 'descriptors'], file, read),
    };
  });
}
