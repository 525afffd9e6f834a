interface Client {
  quit(): Promise<unknown>;
  disconnect(): void;
}

/** Closes a connection once all its commands have been answered. */
export async function quit(client: Client): Promise<void> {
  try {
    await client.quit();
  } catch {
    // Without a connection QUIT can't be sent.
    client.disconnect();
  }
}
