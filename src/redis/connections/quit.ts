interface Client {
  quit(): Promise<unknown>;
  disconnect(): void;
}

/** Ends a connection once what was sent has been answered. */
export async function quit(client: Client): Promise<void> {
  try {
    await client.quit();
  } catch {
    // Not connected, so there is nobody to say goodbye to.
    client.disconnect();
  }
}
