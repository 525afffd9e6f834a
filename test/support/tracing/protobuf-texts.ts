/** Wire types: https://protobuf.dev/programming-guides/encoding/#structure */
const BYTES_OF = { 1: 8, 5: 4 } as const;

/** Every text in a protobuf message and its inner messages, including bytes that only look like a text. */
export function protobufTexts(message: Buffer): string[] {
  const texts: string[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = message[at];
      if (byte === undefined) throw new RangeError('a message that is cut short');
      at += 1;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const type = varint() % 8;
    if (type === 0) varint();
    else if (type === 2) {
      const length = varint();
      const field = message.subarray(at, at + length);
      if (field.length < length) throw new RangeError('a message that is cut short');
      at += length;
      texts.push(field.toString(), ...textsInside(field));
    } else if (type === 1 || type === 5) at += BYTES_OF[type];
    else throw new RangeError(`no field has the type ${type}`);
  }
  return texts;
}

/** A text and a message have the same wire type. */
function textsInside(field: Buffer): string[] {
  try {
    return protobufTexts(field);
  } catch {
    return [];
  }
}
