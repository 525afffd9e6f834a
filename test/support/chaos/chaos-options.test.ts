import { chaosOptions } from './chaos-options.js';

const defaults = { seconds: 60, rounds: 2 };

test('options that are not set have their defaults, and the seed is random', () => {
  const { seed, ...others } = chaosOptions({}, defaults);
  expect(others).toEqual({ ...defaults, topologies: ['standalone', 'sentinel', 'cluster'] });
  expect(seed).toBeGreaterThanOrEqual(0);
});

test('options that are set replace the defaults', () => {
  const environment = { CHAOS_SEED: '7', CHAOS_SECONDS: '5', CHAOS_TOPOLOGY: 'cluster' };
  expect(chaosOptions({ ...environment, CHAOS_ROUNDS: '3' }, defaults)).toEqual({
    seed: 7,
    seconds: 5,
    topologies: ['cluster'],
    rounds: 3,
  });
});

test.each([
  { CHAOS_TOPOLOGY: 'ring' },
  { CHAOS_SEED: 'any' },
  { CHAOS_SECONDS: '-1' },
  { CHAOS_SEED: '4294967296' },
])('%j makes no sense', (environment) => {
  expect(() => chaosOptions(environment, defaults)).toThrow(/^CHAOS_/);
});
