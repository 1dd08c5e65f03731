/**
 * What an unquoted YAML scalar means: JSON's values and no others. YAML 1.2 core (null, true, false, numbers), with
 * the one rule of YAML 1.1 that Kubernetes manifests rely on: `0644` is octal. `yes`, `on`, dates and `.nan` are text.
 */
const NULL = /^(?:~|null|Null|NULL)?$/;
const BOOLEAN = /^(?:true|True|TRUE|false|False|FALSE)$/;
const OCTAL = /^[-+]?0o?[0-7]+$/;
const HEXADECIMAL = /^0x[0-9a-fA-F]+$/;
const NUMBER = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;

/** Total: what is nothing else is text. Numbers are finite. */
export function resolvePlainScalar(text: string): string | number | boolean | null {
  if (NULL.test(text)) return null;
  if (BOOLEAN.test(text)) return text.toLowerCase() === 'true';
  if (OCTAL.test(text)) {
    const magnitude = Number.parseInt(text.replace(/^[-+]/, '').replace('o', ''), 8);
    return text.startsWith('-') ? -magnitude : magnitude;
  }
  if (HEXADECIMAL.test(text) || NUMBER.test(text)) {
    const value = Number(text);
    return Number.isFinite(value) ? value : text;
  }
  return text;
}
