import { readdirSync } from 'node:fs';

import { readData, ROOT } from './repository-files.js';

type Permissions = Readonly<Record<string, string>>;

export interface Step {
  readonly id?: string;
  readonly if?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly name?: string;
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

export interface Job {
  readonly if?: string;
  readonly needs?: string | readonly string[];
  readonly uses?: string;
  readonly permissions?: Permissions;
  /** It has secrets of its own, and rules for who may use it. */
  readonly environment?: string;
  readonly outputs?: Readonly<Record<string, string>>;
  readonly 'timeout-minutes'?: number;
  readonly strategy?: { readonly matrix: Readonly<Record<string, unknown>> };
  readonly steps?: readonly Step[];
}

/** The parts of a GitHub Actions workflow that the tests check. */
export interface Workflow {
  readonly permissions?: Permissions;
  readonly concurrency?: { readonly group: string };
  readonly jobs: Readonly<Record<string, Job>>;
}

const FOLDER = '.github/workflows/';

/** The paths of all workflows from the project's root. */
export const WORKFLOWS = readdirSync(ROOT + FOLDER).map((file) => FOLDER + file);

export function readWorkflow(path: string): Workflow {
  return readData(path) as Workflow;
}

/** The steps of all jobs. */
export function stepsOf({ jobs }: Workflow): Step[] {
  return Object.values(jobs).flatMap(({ steps = [] }) => steps);
}

/** The names of a job and of all jobs that must succeed before it. */
export function requiredBy({ jobs }: Workflow, name: string): string[] {
  const needs = jobs[name]?.needs ?? [];
  const direct = typeof needs === 'string' ? [needs] : needs;
  return [name, ...direct.flatMap((job) => requiredBy({ jobs }, job))];
}
