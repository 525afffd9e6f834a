import type { Aim } from './schedule.js';

/** A fault that this project had, or could have had. */
export interface PlantedFault {
  readonly name: string;
  /** Puts the fault into the code of this process. Returns a function that takes it out again. */
  readonly plant?: () => () => void;
  /** A function of a fragment, `<path in lua, without .lua>.<name>`, that has another body: `faultyScripts`. */
  readonly lua?: string;
  readonly body?: string;
  /** It takes over 40 schedules to find it from seed 1 on, so only full runs look for it. */
  readonly isRare?: boolean;
  /** What it takes to find it, where many things have to come together. */
  readonly aim?: Aim;
  /** Shortly before a seed that shows it, if the search from 1 on would take many schedules. */
  readonly firstSeed?: number;
}
