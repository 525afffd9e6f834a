import { commandToInstall, findOrInstall, findProgram } from './install-package.mjs';
import { skipping } from './skipping.mjs';

const PACKAGES = { apt: 'chromium' };
/** The program's names in packages of Debian, Ubuntu and Google. */
const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** The path of a Chromium of this machine, or undefined. */
export function chromiumOnPath() {
  return NAMES.map((name) => findProgram(name)).find(Boolean);
}

/**
 * The Chromium for the tests of the dashboard. Without one the path is empty, and one line says so.
 * @param options.get whether a missing one is installed
 */
export function findChromium({ get }) {
  const path = chromiumOnPath() ?? (get ? findOrInstall('chromium', PACKAGES) : undefined);
  if (path) return path;
  skipping('chromium', 'the dashboard and /docs in a browser', commandToInstall(PACKAGES));
  return '';
}
