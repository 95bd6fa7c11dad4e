from footlights_transports.main import main

main()
