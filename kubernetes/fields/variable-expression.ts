/** Text in which `$(NAME)` stands for a variable of a container, as Kubernetes reads `command`, `args` and `env`. */

/** A name ends with the first parenthesis that closes, whatever is in it. */
const REFERENCE = /\$\$|\$\(([^)]*)\)/g;

/** The variables that the text names. */
export function namesInExpression(text: string): readonly string[] {
  return [...text.matchAll(REFERENCE)].flatMap(([, name]) => (name === undefined ? [] : [name]));
}

/** Each `$(NAME)` replaced by its value, and `$$` by `$`; what has no value stays as it is written. */
export function expandExpression(text: string, lookUp: (name: string) => string | undefined): string {
  return text.replaceAll(REFERENCE, (written: string, name: string | undefined) =>
    name === undefined ? '$' : (lookUp(name) ?? written),
  );
}
