from footlights_transports.cli.main import main

main()
