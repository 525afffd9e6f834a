/** The words of a text, without the blanks and line breaks between them. */
export const words = (text: string): string[] => text.trim().split(/\s+/);
