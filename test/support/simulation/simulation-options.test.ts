import { simulationOptions } from './simulation-options.js';

test('a run is given a seed, a time, and steps', () => {
  const environment = { SIMULATION_SEED: '7', SIMULATION_SECONDS: '0', SIMULATION_STEPS: 'tick A' };
  expect(simulationOptions(environment)).toEqual({ seed: 7, seconds: 0, steps: 'tick A' });
});

test('a run that is given nothing takes a minute, with any seed', () => {
  const { seed, seconds, steps } = simulationOptions({});
  expect([Number.isInteger(seed), seconds, steps]).toEqual([true, 60, undefined]);
});

test('a time that is none is refused', () => {
  expect(() => simulationOptions({ SIMULATION_SECONDS: 'long' })).toThrow('SIMULATION_SECONDS');
});
