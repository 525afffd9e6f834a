import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { freePort } from '../../support/free-port.js';
import { until } from '../../support/until.js';
import { startGatewayProcess } from './gateway-process.js';
import { fileHere, type Replacements } from './shipped-file.js';

/** The neighbours of a gateway, as hosts with ports. */
export interface Surroundings {
  readonly sluice: string;
  readonly app: string;
  /** The folder for its files. */
  readonly folder: string;
  /** Whether requests pass while Sluice is down. The shipped file says what to change. */
  readonly isOpen?: boolean;
  /** The header that the gateway sends with each check, if Sluice has tokens. */
  readonly authorization?: string;
}

/** The surroundings and ports of one gateway. */
export interface Place extends Surroundings {
  readonly port: number;
  /** Another free port, for internal use. */
  readonly innerPort: number;
}

/** A gateway of `deploy/gateways`. */
export interface Gateway {
  readonly name: string;
  /** The path of its program; empty if it is missing, which `scripts/lib/find-gateways.mjs` announces. */
  readonly program: string;
  /** Writes its files. @returns the arguments of the program */
  configure(place: Place): Promise<readonly string[]>;
  /** Whether it serves, if that is later than it accepts connections. */
  serves?(place: Place): Promise<boolean>;
}

/** Starts a gateway. @returns its URL */
export async function startGateway(gateway: Gateway, surroundings: Surroundings): Promise<string> {
  const folder = await mkdtemp(join(surroundings.folder, 'gateway-'));
  const place = {
    ...surroundings,
    folder,
    port: await freePort(),
    innerPort: await freePort(),
  };
  await startGatewayProcess(gateway.program, await gateway.configure(place), place);
  await until(async () => (await gateway.serves?.(place)) ?? true);
  return `http://127.0.0.1:${place.port}`;
}

/** Writes a shipped file with these replacements. @returns its path */
export async function writeFileHere(
  { folder }: Place,
  name: string,
  replacements: Replacements,
): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, fileHere(name, replacements));
  return path;
}
