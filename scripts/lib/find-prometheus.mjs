import { commandToInstall, findOrInstall, findProgram } from './install-package.mjs';
import { skipping } from './skipping.mjs';

const PACKAGES = { apt: 'prometheus', brew: 'prometheus' };

/**
 * Finds the Prometheus for the tests of the dashboard and the alerts. Returns environment variables for the tests:
 * SLUICE_TEST_PROMETHEUS and SLUICE_TEST_PROMTOOL are the programs' paths, or empty if one is missing. A line says so.
 * @param options.get whether a missing one is installed
 */
export function findPrometheus({ get }) {
  const find = (program) => (get ? findOrInstall(program, PACKAGES) : findProgram(program));
  const prometheus = find('prometheus');
  const promtool = find('promtool');
  if (!prometheus || !promtool) {
    skipping(
      'prometheus and promtool',
      'the queries of the dashboard and the alerts in a Prometheus',
      commandToInstall(PACKAGES),
    );
    return { SLUICE_TEST_PROMETHEUS: '', SLUICE_TEST_PROMTOOL: '' };
  }
  return { SLUICE_TEST_PROMETHEUS: prometheus, SLUICE_TEST_PROMTOOL: promtool };
}
