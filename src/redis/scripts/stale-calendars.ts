/** `lua/lib/calendars.lua` fails a call with this, and with Redis's time. */
const STALE = /\bSTALE (\d+)/;

/**
 * Returns Redis's time in milliseconds since 1970 if a call failed because that is in no window of the calendars that the
 * call brought. Nothing has changed then, and the call is to be sent again with the windows for that time.
 * @returns undefined for another error
 */
export function timeOfStaleCall(error: unknown): number | undefined {
  const time = error instanceof Error ? STALE.exec(error.message)?.[1] : undefined;
  return time === undefined ? undefined : Number(time);
}

/**
 * Sends a call until its calendars hold Redis's time. The second attempt succeeds unless Redis's clock goes back meanwhile.
 * @param time of Redis, as far as it is known
 * @param send rejects with the error of the script
 */
export async function sendWithCalendars<Reply>(
  time: number,
  send: (time: number) => Promise<Reply>,
): Promise<Reply> {
  for (let known = time; ;) {
    try {
      return await send(known);
    } catch (error) {
      const said = timeOfStaleCall(error);
      if (said === undefined) throw error;
      known = said;
    }
  }
}
