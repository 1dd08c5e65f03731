/** How programs of the field print a string: the forms in which a driver's words may hold a secret. */

const hexOf = (code: number, digits: number): string => code.toString(16).padStart(digits, '0');
const utf8 = (text: string): Buffer => Buffer.from(text, 'utf8');
const eachCharacter = (text: string, tell: (character: string, code: number) => string): string =>
  [...text].map((one) => tell(one, one.codePointAt(0) ?? 0)).join('');
const eachByte = (text: string, tell: (byte: number) => string): string => [...utf8(text)].map(tell).join('');
const upperPercent = (byte: number): string => `%${hexOf(byte, 2).toUpperCase()}`;

const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
};
const isPrintable = (one: string): boolean => !/[\p{C}\p{Z}]/u.test(one) || one === ' ';

/** strconv.Quote and strconv.QuoteToASCII: `%q` and `%+q`. */
function goQuote(text: string, asciiOnly = false): string {
  const body = eachCharacter(text, (one, code) => {
    const short = one === '"' ? '\\"' : SHORT_ESCAPES[one];
    if (short !== undefined) return short;
    if (isPrintable(one) && (!asciiOnly || code < 0x80)) return one;
    if (code < 0x80) return `\\x${hexOf(code, 2)}`;
    return code < 0x10000 ? `\\u${hexOf(code, 4)}` : `\\U${hexOf(code, 8)}`;
  });
  return `"${body}"`;
}

/** encoding/json escapes what HTML gives a meaning to. */
function goJson(text: string): string {
  return JSON.stringify(text).replace(/[<>&\u2028\u2029]/g, (one) => `\\u${hexOf(one.charCodeAt(0), 4)}`);
}

/** json.dumps: ASCII, with pairs of surrogates. */
function pythonJson(text: string): string {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (one) => `\\u${hexOf(one.charCodeAt(0), 4)}`);
}

function goQueryEscape(text: string): string {
  return eachByte(text, (byte) => {
    const one = String.fromCharCode(byte);
    if (one === ' ') return '+';
    return /[A-Za-z0-9\-_.~]/.test(one) ? one : upperPercent(byte);
  });
}

function goPathEscape(text: string): string {
  return eachByte(text, (byte) => {
    const one = String.fromCharCode(byte);
    return /[A-Za-z0-9\-_.~$&+=:@]/.test(one) ? one : upperPercent(byte);
  });
}

function pythonRepr(text: string, asciiOnly = false): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const body = eachCharacter(text, (one, code) => {
    if (one === quote) return `\\${one}`;
    if ('\n\r\t\\'.includes(one)) return SHORT_ESCAPES[one] ?? one;
    if (isPrintable(one) && (!asciiOnly || code < 0x80)) return one;
    if (code < 0x100) return `\\x${hexOf(code, 2)}`;
    return code < 0x10000 ? `\\u${hexOf(code, 4)}` : `\\U${hexOf(code, 8)}`;
  });
  return `${quote}${body}${quote}`;
}

function pythonBytesRepr(text: string): string {
  const body = eachByte(text, (byte) => {
    const one = String.fromCharCode(byte);
    if (one === "'" || one === '\\') return `\\${one}`;
    if ('\n\r\t'.includes(one)) return SHORT_ESCAPES[one] ?? one;
    return byte >= 0x20 && byte < 0x7f ? one : `\\x${hexOf(byte, 2)}`;
  });
  return `b'${body}'`;
}

/** bash: `printf %q` of what needs more than quotes. */
function bashQuote(text: string): string {
  const body = eachByte(text, (byte) => {
    const one = String.fromCharCode(byte);
    if (one === "'" || one === '\\') return `\\${one}`;
    if (byte >= 0x20 && byte < 0x7f) return one;
    return SHORT_ESCAPES[one] ?? `\\${byte.toString(8).padStart(3, '0')}`;
  });
  return `$'${body}'`;
}

function htmlEscape(text: string): string {
  const names: Readonly<Record<string, string>> = {
    '&': 'amp',
    '<': 'lt',
    '>': 'gt',
    '"': '#34',
    "'": '#39',
  };
  return text.replace(/[&<>"']/g, (one) => `&${names[one]};`);
}

const base64 = (text: string): string => utf8(text).toString('base64');
const inLines = (text: string, columns: number, end = '\n'): string =>
  text.replace(new RegExp(`.{${columns}}(?=.)`, 'g'), `$&${end}`);
const hex = (text: string): string => utf8(text).toString('hex');

/** By the name of the function that prints it so. */
export const TOLD_FORMS: Readonly<Record<string, (secret: string) => string>> = {
  'as it is': (text) => text,
  'Go %q': (text) => goQuote(text),
  'Go %+q': (text) => goQuote(text, true),
  'Go %v of bytes': (text) => `[${[...utf8(text)].join(' ')}]`,
  'Go %#v of bytes': (text) =>
    `[]byte{${[...utf8(text)].map((byte) => `0x${byte.toString(16)}`).join(', ')}}`,
  'Go %x': hex,
  'Go %X': (text) => hex(text).toUpperCase(),
  'Go % x': (text) => hex(text).replace(/..(?=.)/g, '$& '),
  'Go %# x': (text) => hex(text).replace(/../g, '0x$& '),
  'Go url.QueryEscape': goQueryEscape,
  'Go url.PathEscape': goPathEscape,
  'Go json.Marshal': goJson,
  'Go json.Marshal in %q': (text) => goQuote(goJson(text)),
  'Go json.Marshal of %q of %q': (text) => goJson(goQuote(goQuote(text))),
  'Go %q of url.QueryEscape of %q': (text) => goQuote(goQueryEscape(goQuote(text))),
  'url.QueryEscape twice': (text) => goQueryEscape(goQueryEscape(text)),
  'JSON.stringify': (text) => JSON.stringify(text),
  encodeURIComponent,
  'Python json.dumps': pythonJson,
  'Python repr': (text) => pythonRepr(text),
  'Python ascii': (text) => pythonRepr(text, true),
  'Python repr of bytes': pythonBytesRepr,
  'Python list of bytes': (text) => `[${[...utf8(text)].join(', ')}]`,
  'Python quote_plus': (text) => goQueryEscape(text).replaceAll('~', '~'),
  'Python shlex.quote': (text) => `'${text.replaceAll("'", `'"'"'`)}'`,
  'shell quotes': (text) => `'${text.replaceAll("'", `'\\''`)}'`,
  'shell backslashes': (text) => text.replace(/[^A-Za-z0-9\n]/gu, '\\$&'),
  'bash printf %q': bashQuote,
  'YAML single quotes': (text) => `'${text.replaceAll("'", "''")}'`,
  'HTML entities': htmlEscape,
  'percent, lower case': (text) => eachByte(text, (byte) => `%${hexOf(byte, 2)}`),
  'hex with colons': (text) => hex(text).replace(/..(?=.)/g, '$&:'),
  base64: base64,
  'base64, unpadded': (text) => base64(text).replace(/=+$/, ''),
  'base64, URL': (text) => base64(text).replaceAll('+', '-').replaceAll('/', '_'),
  'base64, URL, unpadded': (text) => utf8(text).toString('base64url'),
  'base64, escaped for a URL': (text) => goQueryEscape(base64(text)),
  'base64, MIME lines': (text) => inLines(base64(text), 76, '\r\n'),
  'base64, PEM lines': (text) => inLines(base64(text), 64),
  'base64, PEM lines in %q': (text) => goQuote(inLines(base64(text), 64)),
  'base64 of user and password': (text) => base64(`user:${text}`),
  'base64 behind one byte': (text) => base64(`a${text}b`),
  'base64 behind two bytes': (text) => base64(`ab${text}c`),
  'base64 behind three bytes': (text) => base64(`abc${text}de`),
  'hex in a longer text': (text) => hex(`user:${text}@host`),
};
