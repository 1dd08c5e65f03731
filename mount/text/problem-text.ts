/** What is wrong with a field, in one line: `spec.containers: is missing`. What is of no field is told alone. */
export function problemText({
  field,
  message,
}: {
  readonly field?: string | null | undefined;
  readonly message: string;
}): string {
  return (field ?? '') === '' ? message : `${field}: ${message}`;
}
