from toolkit.codegen.cli import main

main()
