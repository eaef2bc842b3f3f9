import { define } from '../define.ts'
import { scripts } from '../completion-scripts.ts'

type Shell = keyof typeof scripts

export const command = define<{}, [Shell]>({
  brief: 'Print the completions for a shell',
  about:
    'Prints a script that completes commands, flags and the names of jobs; to be read by the shell when it starts.',
  examples: [
    ['source <(portal completion bash)', 'in ~/.bashrc'],
    ['source <(portal completion zsh)', 'in ~/.zshrc, after compinit'],
    ['portal completion fish | source', 'in ~/.config/fish/config.fish'],
  ],
  parameters: {
    positional: {
      kind: 'tuple',
      parameters: [
        {
          parse: (input: string): Shell => {
            if (Object.hasOwn(scripts, input)) return input as Shell
            throw new RangeError(
              `${JSON.stringify(input)} is not a shell that is known: it is one of ${Object.keys(scripts).join(', ')}`,
            )
          },
          brief: 'bash, zsh or fish',
          placeholder: 'SHELL',
          proposeCompletions: (partial: string) => Object.keys(scripts).filter((name) => name.startsWith(partial)),
        },
      ],
    },
  },
  async run(cli, _, shell) {
    cli.print(scripts[shell])
  },
})
