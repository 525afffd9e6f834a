import { BOUNDS } from '../../limiter/bounds.js';
import type { DescriptorPattern } from './descriptor-patterns.js';
import type { LocatedDescriptor, Warning } from './limits-file.js';

const isOn = (value: unknown): boolean => value === true;
const isFilled = (value: unknown): boolean => Array.isArray(value) && value.length > 0;

/** The fields without a counterpart, and what happens instead. */
const WITHOUT_COUNTERPART: readonly (readonly [
  name: string,
  isSet: (descriptor: LocatedDescriptor) => boolean,
  instead: string,
])[] = [
  [
    'replaces',
    ({ rate_limit }) => isFilled(rate_limit?.replaces),
    'a request is checked against the limits of all its descriptors',
  ],
  ['quota_mode', (one) => isOn(one.quota_mode), 'the limit denies like any other'],
  [
    'share_threshold',
    (one) => isOn(one.share_threshold),
    'each value that the wildcard matches has a limit of its own',
  ],
  ['detailed_metric', (one) => isOn(one.detailed_metric), 'metrics are counted by rule'],
  ['value_to_metric', (one) => isOn(one.value_to_metric), 'metrics are counted by rule'],
  ['metadata', ({ metadata }) => Boolean(metadata), 'answers carry none'],
];

/** @param pattern of its keys */
export function warningsAbout(
  descriptor: LocatedDescriptor,
  pattern: DescriptorPattern,
): Warning[] {
  const { at, key, rate_limit: limit } = descriptor;
  const problems = WITHOUT_COUNTERPART.filter(([, isSet]) => isSet(descriptor)).map(
    ([name, , instead]) => `${name} has no counterpart: ${instead}`,
  );
  if (key.includes('*')) {
    problems.push(
      'a wildcard in a key has no counterpart: the rule is for the key with that character',
    );
  }
  const { max } = BOUNDS.maxRequests;
  if ((limit?.requests_per_unit ?? 0) > max) {
    problems.push(`requests_per_unit becomes ${max}, the most that a rule may have`);
  }
  if (limit?.unit && !pattern.limitsLongValues) {
    problems.push(
      'long values may pass without this limit: its own texts are so long that a key, of 512 bytes, has too little of them',
    );
  }
  return problems.map((problem) => ({ file: at.file, line: at.line, problem }));
}
