import { TOPOLOGY_NAMES } from '../topologies/topology.js';
import { cellsOf, FAULT_NAMES, LOAD_NAMES, nameOf } from './cells.js';
import { FULL_CELLS } from './quick-cells.js';
import { recoveryOptions } from './recovery-options.js';

test.each(TOPOLOGY_NAMES)('with %s every load meets every fault that there is', (topology) => {
  const names = cellsOf(topology)
    .filter(({ load }) => load !== 'turning')
    .map(nameOf);
  // Without the fault that needs the end of a window, and the one that this topology does not have.
  expect(new Set(names).size).toBe((LOAD_NAMES.length - 1) * (FAULT_NAMES.length - 2));
});

test('a stall and a loss of scripts meet the end of a window', () => {
  const faults = cellsOf('standalone').flatMap(({ load, fault }) =>
    load === 'turning' ? [fault] : [],
  );
  expect(faults).toEqual(expect.arrayContaining(['stall-800', 'flush-stalled']));
});

test('the quick cells have each load, and each fault of one Redis', () => {
  const cells = cellsOf('standalone');
  expect(new Set(FULL_CELLS.map(({ load }) => load))).toEqual(new Set(LOAD_NAMES));
  expect(new Set(FULL_CELLS.map(({ fault }) => fault))).toEqual(
    new Set(cells.map(({ fault }) => fault)),
  );
});

test('a cell is asked for by its name, in the topologies that have it', () => {
  const { topologies, cellsOf } = recoveryOptions({ CHAOS_CELL: 'bulk/failover' });
  expect(topologies).toEqual(['sentinel', 'cluster']);
  expect(cellsOf('cluster')).toEqual([{ load: 'bulk', fault: 'failover' }]);
});

test('a name that no cell has makes no sense', () => {
  expect(() => recoveryOptions({ CHAOS_CELL: 'bulk/rain' })).toThrow(/^CHAOS_CELL: .*bulk\/rain/);
});
