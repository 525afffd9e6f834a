import { withinDeadline } from '../../common/deadline.js';

interface Client {
  quit(): Promise<unknown>;
  disconnect(): void;
}

/** Closes a connection once all its commands have been answered, or when that takes longer than `timeoutMillis`. */
export async function quit(client: Client, timeoutMillis: number): Promise<void> {
  try {
    await withinDeadline(client.quit(), timeoutMillis);
  } catch {
    // Without a connection QUIT can't be sent.
    client.disconnect();
  }
}
