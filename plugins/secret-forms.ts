/** The ways in which a secret comes back in the words of a driver, or of the tool below it. */

/** Shorter values occur in ordinary words; taking them out would only garble the message. */
const SECRET_LENGTH_MIN = 4;
const SECRET_LINE_LENGTH_MIN = 8;

/** The text with `[redacted]` for every form of every value; the same text when it holds none. */
export function withoutSecretValues(text: string, values: Iterable<string>): string {
  const forms = new Set<string>();
  for (const value of values) addForms(forms, value);
  // Longest first, so that one value inside another leaves no rest.
  const longestFirst = [...forms].sort((a, b) => b.length - a.length);
  return longestFirst.reduce((rest, form) => rest.replaceAll(form, '[redacted]'), text);
}

/** As it is, trimmed, by line, quoted, or encoded. */
function addForms(forms: Set<string>, value: string): void {
  const lines = value.split(/\r?\n/).filter((line) => line.length >= SECRET_LINE_LENGTH_MIN);
  for (const plain of [value, value.trim(), ...lines]) {
    if (plain.length < SECRET_LENGTH_MIN) continue;
    const bytes = Buffer.from(plain);
    const base64 = bytes.toString('base64');
    forms.add(plain).add(JSON.stringify(plain).slice(1, -1)).add(encodeURIComponent(bytes.toString()));
    forms
      .add(base64)
      .add(base64.replace(/=+$/, ''))
      .add(bytes.toString('base64url'))
      .add(bytes.toString('hex'));
  }
}
