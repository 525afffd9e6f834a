import { approve, ratePath, send } from '../../http-client.js';
import { logMuch } from '../../log-much.js';
import { scrape } from '../../prometheus-text.js';
import { lastWithin, within } from '../within.js';
import type { Affected, Fault } from './faults.js';

/** A replica that a write to its log stops answers nothing meanwhile. */
const ANSWERED_WITHIN_MILLIS = 30_000;
const RESUMED_WITHIN_MILLIS = 5000;
const DECISIONS = 20;
const KEY = 'unread-log';

/** Nobody reads the log of the replica, which decides, and drops what it can't write. */
export const unreadLog = (): Fault => ({
  settings: { LOG_2XX: 'true' },
  happen: async (affected) => {
    const { replica, violated } = affected;
    if (!(await fillsLog(affected))) return;
    const [, dropped] = await resumedLog(affected);
    if (dropped === 0) violated('no line of a log is dropped that nobody reads');
    replica.readLog(true);
    const [told, all] = await lastWithin(
      RESUMED_WITHIN_MILLIS,
      () => resumedLog(affected),
      ([told, all]) => told === all,
    );
    if (told !== all) violated(`the log says that ${told} lines were dropped, not ${all}`);
  },
  happenAtTheEnd: async (affected) => {
    await fillsLog(affected);
  },
});

/** Has more logged than the replica can write. @returns whether it goes on to decide */
async function fillsLog({ replica, violated }: Affected): Promise<boolean> {
  replica.readLog(false);
  try {
    await within(ANSWERED_WITHIN_MILLIS, 'answers while nobody reads the log', async () => {
      await logMuch(replica.url);
      for (let decided = 0; decided < DECISIONS; decided += 1) {
        const id = await approve(replica.url, KEY);
        await send(replica.url, 'DELETE', `${ratePath(KEY)}/${id}`);
      }
    });
    return true;
  } catch (error) {
    violated(String(error));
    replica.readLog(true);
    return false;
  }
}

/** How many lines were dropped: by the log, and by the metric. */
async function resumedLog({ replica }: Affected): Promise<[told: number, all: number]> {
  const all = (await scrape(replica.url)).value('ratelimit_dropped_log_lines_total');
  const told = replica.log
    .filter(({ msg }) => String(msg).startsWith('log lines were dropped'))
    .reduce((sum, { lines }) => sum + Number(lines), 0);
  return [told, all];
}
