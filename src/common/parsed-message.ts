import type { z } from 'zod';

/** @returns undefined for a text that is no JSON, or has another form, such as one of another version */
export function parsedMessage<Message>(
  schema: z.ZodType<Message>,
  text: string,
): Message | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
